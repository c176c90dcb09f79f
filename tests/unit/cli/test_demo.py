"""`zombiescope demo`, and `zombiescope diagnose` of what it leaves: what a newcomer sees first."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from tests.helpers.cli import Cli, Done

from zombiescope.cli import picture
from zombiescope.cli.failure import Failure
from zombiescope.diagnosis.calibration import calibrated
from zombiescope.diagnosis.thresholds import CALIBRATION_STRONGEST
from zombiescope.documents.columns import decoded
from zombiescope.web.frozen import NotBuiltError


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("newcomer")


@pytest.fixture(scope="module")
def demo(home: Path) -> Done:
    return Cli(home)("demo")


@pytest.fixture(scope="module")
def recording(home: Path, demo: Done) -> str:
    assert demo.code == 0
    return str(home / ".local/state/zombiescope/demo")


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_the_first_screen_names_hog_culprit_and_how_it_is_known(demo: Done) -> None:
    assert demo.out.splitlines()[2].startswith(
        "CRITICAL  core 39 starved for 6 s: kubelet walks 68,440 dead memory cgroups"
    )
    sure = calibrated(CALIBRATION_STRONGEST)  # all evidence there is
    assert f"zombie-memcg · confidence {sure:.2f} · reproduced on Linux 6.18" in demo.out
    assert demo.err.count("\n") == 1
    assert "            systemctl disable --now ecs.service\n" in demo.out
    answer = demo.out.partition("look at it yourself")[0].splitlines()
    assert len(answer) <= 45, "one screen"
    assert max(len(line) for line in answer if not line.startswith("Next: ")) <= 80
    order = ("CRITICAL", "  Fix", "  Cause", "  Impact", "  Evidence", "  Ruled out", "Next: ")
    at = [next(number for number, line in enumerate(answer) if line.startswith(head)) for head in order]
    assert at == sorted(at)
    assert any("· incident " in line for line in answer[3:6])


def test_what_it_says_to_type_can_be_pasted(demo: Done, home: Path) -> None:
    lines = demo.out.partition("look at it yourself\n")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[1] for line in lines] == ["heatmap", "flamegraph", "diagnose"]
    for line in lines:
        done = Cli(home)(*shlex.split(line)[1:])
        assert (done.code, done.err if done.code else "") in [(0, ""), (3, "report.html: " + done.err[13:])]
    assert (home / "report.html").read_text().startswith("<!doctype html>")


def test_it_leads_to_the_page_on_the_guilty_second(demo: Done, home: Path, recording: str) -> None:
    command, url = demo.out.partition("or on the page\n")[2].splitlines()
    words = shlex.split(command)[1:]
    assert [word for word in words if word in ("serve", "--no-token", recording)] == ["serve", "--no-token", recording]
    served = words[words.index("--listen") + 1] if "--listen" in words else "127.0.0.1:8321"
    assert urlsplit(url.strip()).netloc == served
    asked = parse_qs(urlsplit(url.strip()).query)
    assert asked["page"] == ["node"]
    first, _, last = asked["sel"][0].partition("..")
    found = Cli(home)("cores", recording, "--from", first, "--to", last, "--hottest", "1", "--json").document
    assert found["cores"][0]["cpu"] == 39
    assert float(asked["from"][0]) < float(first) < float(last) <= float(asked["to"][0])


def test_its_link_is_not_that_of_a_page_that_has_the_port(home: Path) -> None:
    # GIVEN somebody who listens where the page is usually
    with socket.socket() as taken:
        try:
            taken.bind(("127.0.0.1", 8321))
            taken.listen()
        except OSError:
            pass  # then it is taken by somebody else
        # WHEN the demo says how to open its page
        command, url = Cli(home)("demo").out.partition("or on the page\n")[2].splitlines()
    # THEN both say another port
    words = shlex.split(command)
    address = words[words.index("--listen") + 1]
    assert not address.endswith(":8321")
    assert urlsplit(url.strip()).netloc == address


def test_without_a_display_demo_says_so_and_ends(home: Path) -> None:
    done = Cli(home)("demo", "--open", DISPLAY="", WAYLAND_DISPLAY="")
    assert done.code == 0
    assert "no display here" in done.err


def test_a_command_outside_of_the_path_is_named_by_its_path(tmp_path: Path) -> None:
    script = tmp_path / "bin/zombiescope"
    script.parent.mkdir()
    script.write_text("from zombiescope.cli.typed import called\nprint(called())\n")
    script.chmod(0o755)

    def said(cwd: Path, path: str) -> str:
        environment = Cli(tmp_path).environment(PATH=path)
        command = [sys.executable, str(script)]
        return subprocess.run(command, cwd=cwd, env=environment, check=True, capture_output=True, text=True).stdout

    assert said(tmp_path, os.defpath) == "bin/zombiescope\n"
    assert said(Path("/proc"), os.defpath) == f"{script}\n"
    assert said(tmp_path, f"{script.parent}:{os.defpath}") == "zombiescope\n"


def test_a_window_without_a_recording_is_not_called_well(cli: Cli, recording: str) -> None:
    done = cli("diagnose", recording, "--at", "05:00:00")
    assert (done.code, done.out) == (1, "")
    assert "nothing was recorded in 2025-04-01 04:59:00 – 05:01:01 UTC; choose a window of 2025-04-01 02:53" in done.err
    empty = cli("diagnose", recording, "--from", "+0s", "--to", "+1s")
    assert empty.out.splitlines()[2].startswith("this window cannot be judged: neither cores nor stacks")
    for name in ("empty.md", "empty.html"):
        assert cli("diagnose", recording, "--from", "+0s", "--to", "+1s", "-o", name).code == 0
        assert "this window cannot be judged" in (cli.home / name).read_text()
    quiet = cli("diagnose", recording, "--last", "3s")
    assert quiet.out.splitlines()[2].startswith("no problems found in the recorded part of this window")


def test_a_wrong_length_of_live_is_named(cli: Cli) -> None:
    done = cli("diagnose", "--live", "1s")
    assert done.code == 2
    assert "--live: must be 2s to 10m" in done.err


def test_the_page_shows_no_average_where_nothing_was_measured(cli: Cli, recording: str, tmp_path: Path) -> None:
    assert cli("diagnose", recording, "-o", "report.html").code == 0
    frozen = re.search(r'id="frozen">(.*?)</script>', (tmp_path / "report.html").read_text())
    assert frozen is not None
    packed = json.loads(frozen[1])["answers"]["strip 1"]
    _, arrays = decoded(gzip.decompress(base64.b64decode(packed)))
    busy = arrays["average_busy"]
    assert np.isnan(busy).any(), "nothing was measured before the profile began"
    assert 0.25 < np.nanmin(busy) < np.nanmax(busy) < 0.35, "the node was 28 to 33% busy all the time"


def test_a_tree_without_a_page_is_one_line(tmp_path: Path) -> None:
    def absent() -> str:
        raise NotBuiltError("the web page is not built")

    with pytest.raises(Failure, match=r"r\.html: the web page is not built"):
        picture.write_page(tmp_path / "r.html", absent)
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("damage", ["half a file", "no files"])
def test_a_damaged_recording_is_one_line_or_a_diagnosis(cli: Cli, recording: str, tmp_path: Path, damage: str) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(recording, broken)
    for path in [path for path in broken.rglob("*") if path.is_file()]:
        if damage == "half a file":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        else:
            path.unlink()
    done = cli("diagnose", str(broken))
    assert done.code in (0, 1, 3)
    assert "Traceback" not in done.err
    assert "defect" not in done.err


def test_keep_removes_nothing_that_was_there(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "recording").mkdir()
    (tmp_path / "recording/precious").touch()
    done = cli("demo", "--output", str(tmp_path))
    assert (done.code, done.out) == (1, "")
    assert "recording exists already; name another directory" in done.err
    assert (tmp_path / "recording/precious").exists()


def test_live_leaves_nothing_when_its_reader_goes_away(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    command = [sys.executable, "-m", "zombiescope.cli.main", "diagnose", "--live", "2s", "--verbose"]
    environment = cli.environment(TMPDIR=str(place))
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(60) == -signal.SIGPIPE
    assert not list(place.iterdir())
