"""Commands beside a recorder that runs: a stand-in that holds the lock and publishes itself, as the real one
does."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.cli import Cli
from tests.helpers.recordings import SECOND, Written, write_recording

from zombiescope.base import python as _python
from zombiescope.cli import main, private_recorder, record
from zombiescope.cli.failure import Failure
from zombiescope.store import incident_file

ZOMBIESCOPE = [sys.executable, "-m", "zombiescope.cli.main"]


@dataclass(frozen=True)
class StandIn:
    """A recorder as seen from outside."""

    written: Written
    runtime: Path

    def append(self, seconds: int, seq: int) -> None:
        """Another segment, directly after what there is."""
        started_us = self.written.start_us
        write_recording(
            self.written.dir, start_us=self.written.end_us, seconds=seconds, first_seq=seq, closed=False,
            recorder_started_us=started_us,
        )  # fmt: skip


@pytest.fixture
def recorder(cli: Cli) -> Iterator[StandIn]:
    now_us = time.time_ns() // 1000
    written = write_recording(cli.home / "flight", start_us=now_us - 30 * SECOND, seconds=30, closed=False)
    runtime = cli.home / "run"
    runtime.mkdir()
    said = {
        "pid": os.getpid(), "recording": str(written.dir), "node": "lab", "started_us": written.start_us,
        "mark_socket": str(runtime / "mark.sock"),
    }  # fmt: skip
    (runtime / "recorder.json").write_text(json.dumps(said))
    with (written.node_dir / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield StandIn(written, runtime)


def test_status_tells_how_the_recorder_is_doing(cli: Cli, recorder: StandIn) -> None:
    document = cli("status", "--json").document
    assert document["running"] is True
    assert (document["pid"], document["recording"]) == (os.getpid(), str(recorder.written.dir))
    assert document["since"] == recorder.written.start_us / 1e6
    assert document["gaps"] == document["incidents"] == []
    assert document["cost"]["cpu_ratio"] == pytest.approx(0.0025)
    assert document["cost"]["rss_bytes"] == 41 << 20
    assert document["cost"]["bytes_per_hour"] == pytest.approx(2100 * 3600)
    assert document["missing"][0]["source"] == "systemd"
    assert "no D-Bus socket; mount /run/dbus" in cli("status").out


@contextmanager
def beside(recorder: StandIn, directory: Path) -> Iterator[Written]:
    """A second recorder, started later."""
    later_us = recorder.written.end_us - 5 * SECOND
    written = write_recording(directory, start_us=later_us, seconds=5, closed=False)
    said = {"pid": os.getpid(), "recording": str(written.dir), "node": "lab", "started_us": written.start_us}
    (recorder.runtime / "recorder-2.json").write_text(json.dumps(said))
    with (written.node_dir / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield written


def test_status_shows_all_recorders_and_that_of_a_directory(cli: Cli, recorder: StandIn) -> None:
    with beside(recorder, cli.home / "short") as short:
        document = cli("status", "--json").document
        assert document["recording"] == str(recorder.written.dir)
        assert [one["recording"] for one in document["recorders"]] == [str(recorder.written.dir), str(short.dir)]
        shown = cli("status").out
        assert shown.count("recording lab into") == 2
        only = cli("status", str(short.dir), "--json").document
        assert (only["recording"], len(only["recorders"])) == (str(short.dir), 1)
        assert cli("cores", "--json").document["from"] < short.start_us / 1e6
    nobody = cli("status", str(cli.home / "short"))
    assert "no recorder writes into" in nobody.out
    assert cli("status", str(cli.home / "short"), "--json").document["running"] is False


def test_a_mark_stands_on_the_axis_of_every_recorder(cli: Cli, recorder: StandIn) -> None:
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as first,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as second,
    ):
        first.bind(str(recorder.runtime / "mark.sock"))
        second.bind(str(recorder.runtime / "mark-2.sock"))
        assert cli("mark", "epoch 12").code == 0
        for one in (first, second):
            one.settimeout(10.0)
            assert json.loads(one.recv(65536))["text"] == "epoch 12"


def test_status_lists_incidents_that_go_on_and_those_of_this_run_that_are_over(cli: Cli, recorder: StandIn) -> None:
    since_s = recorder.written.start_us / 1e6

    def entry(name: str, severity: str, from_s: float, state: str) -> dict[str, Any]:
        causes = [{"summary": f"{name} happened", "confidence": 0.9}]
        return {"id": name, "severity": severity, "state": state, "from": since_s + from_s, "to": since_s + from_s + 2,
                "causes": causes}  # fmt: skip

    known = [
        entry("before", "critical", -100, "closed"),
        entry("first", "warning", 1, "closed"),
        entry("second", "warning", 5, "closed"),
        entry("small", "warning", 8, "open"),
        entry("large", "critical", 9, "open"),
    ]
    incident_file.write(recorder.written.node_dir, known, recorder.written.end_us)
    listed = cli("status", "--json").document["incidents"]
    assert [one["id"] for one in listed] == ["large", "small", "second", "first"]
    said = cli("status").out
    assert said.index("large happened") < said.index("small happened") < said.index("second happened")
    assert "over: first happened" in said
    assert "before happened" not in said


def test_status_of_a_recorder_that_has_written_nothing_yet(cli: Cli, recorder: StandIn) -> None:
    recorder.written.node_dir.rename(recorder.written.dir / "aside")
    (recorder.written.dir / "node=lab").mkdir()
    (recorder.written.dir / "aside" / "lock").rename(recorder.written.node_dir / "lock")
    done = cli("status", "--json")
    assert done.code == 0
    assert (done.document["running"], done.document["pid"]) == (True, os.getpid())
    assert done.document["until"] is done.document["cost"] is None
    assert cli("status").out.startswith("recording lab into")


def test_readers_find_the_recording_of_the_recorder(cli: Cli, recorder: StandIn) -> None:
    assert cli("cores", "--json").document["node"] == "lab"
    assert cli("cgroups", "--json").document["source"] == "recording"


def test_a_second_up_names_the_recorder_that_runs(cli: Cli, recorder: StandIn) -> None:
    done = cli("up")
    assert done.code == 1
    assert f"pid {os.getpid()}" in done.err
    assert "zombiescope top" in done.err


def test_a_mark_lands(cli: Cli, recorder: StandIn) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as marks:
        marks.bind(str(recorder.runtime / "mark.sock"))
        assert cli("mark", "epoch 12").code == 0
        assert json.loads(marks.recv(65536))["text"] == "epoch 12"


def test_follow_gives_each_new_event_as_one_line(cli: Cli, recorder: StandIn) -> None:
    # GIVEN somebody who follows
    with subprocess.Popen(
        [*ZOMBIESCOPE, "events", "--follow", "--json", "--kind", "mark"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=cli.environment(),
    ) as follower:  # fmt: skip
        assert follower.stdout is not None
        try:
            wait_until_idle(follower.pid)
            # WHEN the recorder goes on in a new segment, in which a mark was set
            recorder.append(seconds=8, seq=2)
            assert select.select([follower.stdout], [], [], 60)[0], "no line came"
            event = json.loads(follower.stdout.readline())
        except BaseException:
            follower.kill()
            raise
        # THEN that mark arrives, and not the one of before
        assert (event["kind"], event["text"]) == ("mark", "epoch 12 starts")
        assert event["at"] > recorder.written.end_us / 1e6
        # AND Ctrl-C is the end, not an error
        follower.send_signal(signal.SIGINT)
        assert follower.wait(20) == 0


def wait_until_idle(pid: int, within_s: float = 60) -> None:
    """It has begun, and waits: it used no CPU for half a second."""
    end, used, since = time.monotonic() + within_s, -1, 0.0
    while time.monotonic() < end:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        now = int(words[11]) + int(words[12])
        if now != used:
            used, since = now, time.monotonic()
        elif used > 20 and time.monotonic() - since > 0.5:
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} is busy after {within_s} s")


class Terminal:
    """A program in a terminal of 80 x 24."""

    def __init__(self, arguments: list[str], environment: dict[str, str]) -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.execve(arguments[0], arguments, environment)
        self.shown = ""

    def wait_for(self, text: str, within_s: float = 20) -> None:
        deadline = time.monotonic() + within_s
        while text not in self.shown:
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} was never shown"
            if select.select([self._fd], [], [], left)[0]:
                self.shown += os.read(self._fd, 65536).decode("utf-8", "replace")

    def press(self, key: str) -> None:
        self.shown = ""
        os.write(self._fd, key.encode())

    def ended(self) -> int:
        # The terminal must be read until its end, or the program waits for room.
        while True:
            try:
                if not os.read(self._fd, 65536):
                    break
            except OSError:
                break
        os.close(self._fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("end", ["q", "\x03"])
def test_top_is_driven_by_keys(cli: Cli, recorder: StandIn, end: str) -> None:
    terminal = Terminal([*ZOMBIESCOPE, "top"], cli.environment(TERM="xterm-256color"))
    terminal.wait_for("● live")
    terminal.press("?")
    terminal.wait_for("pause, and continue")
    terminal.press("?")
    terminal.wait_for("blind to")
    terminal.press(" ")
    terminal.wait_for("● paused")
    terminal.press(" ")
    terminal.wait_for("● live")
    terminal.press("s")
    terminal.wait_for("sort: heat")
    terminal.press(end)
    assert terminal.ended() == 0


def test_top_prints_the_live_node_once(cli: Cli, recorder: StandIn) -> None:
    shown = cli("top", "--once").out
    assert "● live" in shown
    assert "kubelet (pid 1201, kubelet.service)" in shown


# --- the recorder that record becomes, and the one that top starts ----------------------------------------


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Runs `zombiescope record ...` and gives the configuration that the recorder would be started with."""

    class Became(Exception):  # noqa: N818  it ends the command as execve would
        pass

    def execve(path: str, arguments: list[str], environment: dict[str, str]) -> None:
        assert environment == _python.steady_environment() | {"ZOMBIESCOPE_CALLED": "zombiescope"}
        assert path == sys.executable
        assert arguments[:4] == [sys.executable, "-P", "-m", "zombiescope.recorder"]
        raise Became(arguments[4])

    def run(*arguments: str) -> dict[str, Any]:
        with pytest.raises(Became) as ended:
            main.application()(args=list(arguments), standalone_mode=False)
        found = json.loads(ended.value.args[0])
        assert isinstance(found, dict)
        return found

    monkeypatch.setattr(os, "execve", execve)
    return run


def test_record_starts_the_recorder_with_what_was_asked(
    became: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = became(
        "record", "rec", "--for", "20s", "--hz", "499", "--interval", "100ms", "--segment", "30s",
        "--keep", "3d", "--max-bytes", "1GiB", "--label", "zone=us-east-1a", "--label", "image=a=b",
        "--event", "cycles", "--node", "gpu-7", "--compact-every", "5m", "--json", "--quiet",
    )  # fmt: skip
    assert config.pop("startup_cpu_s") > 0
    assert config == {
        "dir": str(tmp_path / "rec"), "node": "gpu-7", "for_s": 20, "hz": 499, "event": "cycles",
        "interval_s": 0.1, "segment_s": 30, "keep_s": 3 * 86400, "max_bytes": 1 << 30,
        "labels": {"zone": "us-east-1a", "image": "a=b"}, "compact_every_s": 300, "diagnose": False,
        "python": True, "whole_stacks": True, "read_by_all": False, "leave_out_cores": "isolated", "json": True,
        "quiet": True, "schedule": True, "closer_looks": True, "called": "zombiescope", "as_root": config["as_root"],
    }  # fmt: skip


def test_up_records_as_record_does_and_calls_the_doctor(
    became: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZOMBIESCOPE_DIR", str(tmp_path / "flight"))
    monkeypatch.setenv("ZOMBIESCOPE_RUNTIME_DIR", str(tmp_path / "run"))
    recorded, upped = became("record"), became("up", "--no-page")
    for config in (recorded, upped):
        del config["startup_cpu_s"]
    assert recorded == record.configuration(dir=str(tmp_path / "flight"))
    assert upped == recorded | {"diagnose": True, "demo": "zombiescope demo"}
    assert became("up", "--no-page", "--for", "20s")["for_s"] == 20


def test_a_file_is_nothing_to_record_into(cli: Cli) -> None:
    (cli.home / "file").touch()
    done = cli("record", "file")
    assert (done.code, done.err) == (1, "zombiescope: file is a file; name a directory to record into\n")


def test_the_private_recorder_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # GIVEN a recorder program that writes a recording and waits
    code = (
        "import json, os, sys, time; config = json.loads(sys.argv[1]); home = config['dir'];"
        "os.makedirs(home + '/node=lab'); open(home + '/node=lab/node.json', 'w').write('{}');"
        "open(home + '/runtime', 'w').write(os.environ['ZOMBIESCOPE_RUNTIME_DIR']); time.sleep(60)"
    )
    monkeypatch.setattr(
        private_recorder, "recorder_arguments", lambda config: [sys.executable, "-c", code, json.dumps(config)]
    )
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    # WHEN top has it
    with private_recorder.private_recorder("top") as recorder:
        home = recorder.home
        assert (home / "node=lab").is_dir()
        assert (home / "runtime").read_text() == str(home / "run")
    # THEN nothing is left of it
    assert not home.exists()
    assert not list(tmp_path.iterdir())


def test_a_private_recorder_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys; sys.exit('zombiescope: this kernel has no perf_event_open')"
    monkeypatch.setattr(private_recorder, "recorder_arguments", lambda _: [sys.executable, "-c", code])
    with (
        pytest.raises(Failure, match=r"could not start: .* no perf_event_open"),
        private_recorder.private_recorder("top"),
    ):
        pytest.fail("it did not start")


# --- check ------------------------------------------------------------------------------------------------------


def test_check_wants_a_length_and_a_severity(cli: Cli) -> None:
    for arguments, said in (
        (("--for", "0.5s"), "must be 1s to 10m"),
        (("--for", "soon"), "is not a duration"),
        (("--fail-on", "bad"), "'bad' is not a severity; it is info, warning, critical"),
    ):
        done = cli("check", *arguments)
        assert done.code == 2
        assert said in done.err
        assert not done.out


def test_check_ends_when_its_recorder_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = "import sys; sys.exit('zombiescope: this kernel has no /proc')"
    monkeypatch.setattr(private_recorder, "recorder_arguments", lambda _: [sys.executable, "-c", code])
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert main.run(["check", "--for", "1s"]) == 1
    assert not list(tmp_path.iterdir())


def test_check_ends_when_its_recorder_breaks_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "import json, os, sys, time; home = json.loads(sys.argv[1])['dir']; os.makedirs(home + '/node=lab');"
        "open(home + '/node=lab/node.json', 'w').write('{}'); time.sleep(1); sys.exit('killed by somebody')"
    )
    monkeypatch.setattr(
        private_recorder, "recorder_arguments", lambda config: [sys.executable, "-c", code, json.dumps(config)]
    )
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert main.run(["check", "--for", "5s"]) == 1
    assert capsys.readouterr().err == (
        "zombiescope: the recorder ended early: killed by somebody; 'zombiescope record --for 10s' says more\n"
    )
    assert not list(tmp_path.iterdir())


def test_what_a_boot_would_make_is_no_question_to_a_node_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    from zombiescope import audit
    from zombiescope.audit.finding import MissingUntilBoot
    from zombiescope.audit.surroundings import Surroundings
    from zombiescope.cli.check import window

    unknown = MissingUntilBoot("generator: x-generator", "unknown", "boot it")
    missing = (unknown, audit.Missing("systemd", "no bus", "y"))
    found = audit.Audit(root="/", live=False, findings=(), missing=missing, units=0, enabled=0, platform=None)
    monkeypatch.setattr(audit, "examine", lambda **_: found)
    assert [one.source for one in window._audited(Surroundings()).missing] == ["systemd"]


def test_an_audit_that_breaks_off_is_missing_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    from zombiescope import audit
    from zombiescope.audit.surroundings import Surroundings
    from zombiescope.cli.check import window

    monkeypatch.setattr(audit, "examine", lambda **_: 1 / 0)
    audited = window._audited(Surroundings())
    assert audited.findings == ()
    (missing,) = audited.missing
    assert (missing.source, missing.why) == ("audit", "it broke off: division by zero (ZeroDivisionError)")
