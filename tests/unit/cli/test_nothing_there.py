"""Commands over what is no recording, half of one, or a window without anything: one line, and nothing is written."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.helpers.cli import Cli
from tests.helpers.recordings import write_recording

OUTSIDE = ("--from", "2001-01-01T00:00", "--to", "2001-01-01T00:10")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("nothing")
    write_recording(made / "rec", seconds=20)
    assert Cli(made)("pack", "rec", "-o", "whole.zscope").code == 0
    whole = (made / "whole.zscope").read_bytes()
    (made / "cut.zscope").write_bytes(whole[: len(whole) // 2])
    (made / "noise").write_bytes(bytes(range(256)) * 8)
    (made / "other").mkdir()
    (made / "other" / "file").write_text("something else\n")
    return made


def one_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    assert len(lines) == 1, text
    return lines[0]


# --- freeze ----------------------------------------------------------------------------------------------------------


def test_a_window_of_which_nothing_was_recorded_is_not_frozen(home: Path) -> None:
    done = Cli(home)("freeze", "rec", *OUTSIDE)
    assert done.code == 1
    assert "nothing was recorded in 2001-01-01 00:00:00" in done.err
    assert "choose a window of 2025-10-09 10:53:20" in done.err
    assert not list(home.glob("rec/node=*/frozen/*"))


def test_freeze_says_what_of_the_window_is_kept(home: Path) -> None:
    done = Cli(home)("freeze", "rec", "--from", "2025-10-09T10:43:20", "--to", "2025-10-09T10:53:30", COLUMNS="200")
    assert done.code == 0
    assert "kept: 2025-10-09 10:53:20 – 10:53:30 CEST (10 s of the 10 m 10 s asked for)" in done.out
    done = Cli(home)("freeze", "rec", "--json")
    assert 19 <= done.document["kept_to"] - done.document["kept_from"] <= 21
    assert "asked for" not in Cli(home)("freeze", "rec", "--last", "5s").out


# --- pictures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["flamegraph", "heatmap"])
@pytest.mark.parametrize("ending", ["html", "svg", "txt"])
def test_a_picture_of_nothing_is_not_written(command: str, ending: str, home: Path) -> None:
    done = Cli(home)(command, "rec", "--comm", "nobody-here", "-o", f"{command}.{ending}")
    assert done.code == 1
    assert f"{command}.{ending} was not written: no samples with comm nobody-here" in one_line(done.err)
    assert "recorded is 2025-10-09" in done.err
    assert not (home / f"{command}.{ending}").exists()


def test_a_picture_of_a_window_outside_of_the_recording_is_not_written(home: Path) -> None:
    done = Cli(home)("flamegraph", "rec", *OUTSIDE, "-o", "outside.svg")
    assert (done.code, (home / "outside.svg").exists()) == (1, False)
    assert "outside.svg was not written: no samples in this window" in done.err


# --- what is no recording --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["info", "cores", "diagnose", "compact", "freeze"])
def test_a_pack_that_was_cut_off_says_so(command: str, home: Path) -> None:
    done = Cli(home)(command, "cut.zscope")
    assert done.code == 1
    size = (home / "cut.zscope").stat().st_size
    assert f"cut.zscope is a pack that was cut off after {size:,} bytes; copy it again" in one_line(done.err)


@pytest.mark.parametrize("command", ["compact", "freeze", "info"])
def test_a_file_that_is_something_else_is_no_recording(command: str, home: Path) -> None:
    done = Cli(home)(command, "noise")
    assert done.code == 1
    assert "noise is not a recording" in one_line(done.err)


def test_a_whole_pack_is_never_changed(home: Path) -> None:
    done = Cli(home)("compact", "whole.zscope")
    assert done.code == 1
    assert "whole.zscope is a pack, and a pack is never changed" in one_line(done.err)


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("cut.zscope", "is a pack that was cut off"),
        ("noise", "is not a recording"),
        ("other", "there is no recording in other"),
        ("/proc", "there is no recording in /proc"),
    ],
)
def test_serve_refuses_at_once_what_it_cannot_show(place: str, why: str, home: Path) -> None:
    done = Cli(home)("serve", place, "--listen", "127.0.0.1:0")
    assert done.code == 1
    assert why in one_line(done.err)


def test_serve_refuses_a_directory_that_it_may_not_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, where permissions can be said to be missing also to root."""
    from zombiescope.cli.failure import Failure
    from zombiescope.cli.serve import refuse_unreadable

    def refuses(*_: object) -> object:
        raise PermissionError(13, "Permission denied", str(home / "rec" / "node=x"))

    monkeypatch.setattr("zombiescope.store.store.os.scandir", refuses)
    with pytest.raises(Failure, match="may not be read by this user"):
        refuse_unreadable(home / "rec", None)


def test_serve_waits_for_a_recorder_in_a_directory_that_is_still_empty(home: Path) -> None:
    (home / "empty").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cli = Cli(home)
    process = subprocess.Popen(
        [sys.executable, "-m", "zombiescope.cli.main", "serve", "empty", "--listen", f"127.0.0.1:{port}"],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=home, env=cli.environment(),
    )  # fmt: skip
    try:
        assert process.stderr is not None
        assert f"127.0.0.1:{port}" in process.stderr.readline()
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_a_segment_of_a_newer_version_is_left_and_named(home: Path) -> None:
    from tests.helpers.newer import write_newer_segment

    path = write_newer_segment(home / "newer")
    before = path.read_bytes()
    done = Cli(home)("compact", "newer", "--json")
    assert done.code == 0
    assert done.document["segments"] == 0
    assert [entry["segment"] for entry in done.document["left"]] == [f"log/{path.name}"]
    said = Cli(home)("compact", "newer", COLUMNS="300").err
    assert "was written by a newer version of zombiescope, and this one does not know its table 200" in said
    assert "update zombiescope" in said
    assert path.read_bytes() == before
    info = json.loads(Cli(home)("info", "newer", "--json").out)
    assert info["tables"]["samples"] == 2
