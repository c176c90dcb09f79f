"""A real recorder whose parts die: status, the recording and the terminal of `up` say so, and that it is over."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import DEADLINE_S, RecorderProcess, recording

from zombiescope import _mark
from zombiescope.store import health, locate
from zombiescope.store.health import LIVE_DIAGNOSIS, RECORDER, Part
from zombiescope.store.reader import open_recording

pytestmark = [pytest.mark.kernel, pytest.mark.waits]

CLI = (sys.executable, "-m", "zombiescope.cli.main")


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "runtime"
    monkeypatch.setenv("ZOMBIESCOPE_RUNTIME_DIR", str(place))
    return place


def until(so: Callable[[], bool], what: str = "it never came") -> None:
    end = time.monotonic() + 3 * DEADLINE_S  # a page loads the whole diagnosis
    while not so():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def part(recorder: RecorderProcess, name: str) -> Part:
    """As others see it."""
    found = {one.name: one for one in health.parts_of(recorder.node_dir)}
    return found.get(name) or Part(name, "off", 0.0)


def status(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [*CLI, "status", "--json", "--fail", *arguments], capture_output=True, timeout=60, check=False
    )
    return done.returncode, json.loads(done.stdout)


def test_a_live_diagnosis_that_crashes_is_reported_and_works_again(runtime: Path, tmp_path: Path) -> None:
    with recording(tmp_path / "r", diagnose=True) as recorder:
        until(lambda: part(recorder, LIVE_DIAGNOSIS).work > 0)
        assert status()[0] == 0
        os.kill(part(recorder, LIVE_DIAGNOSIS).pid or 0, signal.SIGSEGV)
        until(lambda: part(recorder, LIVE_DIAGNOSIS).failures > 0)
        until(lambda: part(recorder, LIVE_DIAGNOSIS).state == "ok")
        assert "crashed: SIGSEGV" in part(recorder, LIVE_DIAGNOSIS).why, "the last reason is kept"
        recorder.wait_for_frames(2)
        recorder.stop()
    with open_recording(tmp_path / "r") as opened:
        (event,) = [row for row in opened.table("events").to_pylist() if row["kind"] == "helper_failed"]
        (gap,) = [gap for gap in opened.gaps() if gap.source == LIVE_DIAGNOSIS]
    assert event["text"].startswith("the live diagnosis crashed: SIGSEGV")
    assert event["severity"] == "warning"
    assert gap.why == event["text"]
    assert list(runtime.glob("health-*")) == [], "a clean end is no death"


def test_a_live_diagnosis_that_is_stopped_is_hung(runtime: Path, tmp_path: Path) -> None:
    with recording(tmp_path / "r", diagnose=True) as recorder:
        until(lambda: part(recorder, LIVE_DIAGNOSIS).work > 0)
        pid = part(recorder, LIVE_DIAGNOSIS).pid or 0
        os.kill(pid, signal.SIGSTOP)
        until(lambda: part(recorder, LIVE_DIAGNOSIS).state == "hung")
        code, document = status()
        (told,) = [one for one in document["parts"] if one["name"] == LIVE_DIAGNOSIS]
        assert (code, told["fix"]) == (3, f"kill -CONT {pid}")
        assert LIVE_DIAGNOSIS in {gap["source"] for gap in document["gaps"]}
        os.kill(pid, signal.SIGCONT)
        until(lambda: part(recorder, LIVE_DIAGNOSIS).state == "ok")


def test_a_stopped_recorder_does_not_record_and_a_killed_one_died(runtime: Path, tmp_path: Path) -> None:
    with recording(tmp_path / "r") as recorder:
        until(lambda: part(recorder, RECORDER).state == "ok")
        recorder.signal(signal.SIGSTOP)
        code, document = status()
        assert (code, document["parts"][0]["name"], document["parts"][0]["state"]) == (3, RECORDER, "hung")
        shown = subprocess.run([*CLI, "status"], capture_output=True, text=True, timeout=60, check=True).stdout
        assert shown.startswith("not recording here")
        assert "blind    never" not in shown
        recorder.signal(signal.SIGCONT)
        until(lambda: part(recorder, RECORDER).state == "ok")
        recorder.kill()
        code, document = status(str(tmp_path / "r"))
        assert (code, document["running"], document["parts"][0]["state"]) == (3, False, "failed")
        assert document["died"] == pytest.approx(time.time(), abs=600)
        shown = subprocess.run([*CLI, "status"], capture_output=True, text=True, timeout=60, check=True).stdout
        assert " ".join(shown.split()).startswith(f"died the recorder of here (pid {recorder.pid}) died at ")


def test_a_recorder_that_is_killed_again_and_again_keeps_no_place(runtime: Path, tmp_path: Path) -> None:
    for _ in range(_mark.RECORDERS + 1):
        killed = RecorderProcess(tmp_path / "r")
        until(lambda pid=killed.pid: _published(runtime) == pid)  # type: ignore[misc]
        killed.kill()
    with recording(tmp_path / "r") as last:
        assert [one.pid for one in locate.running_recorders()] == [last.pid]
        assert _published(runtime) == last.pid
        assert _mark.mark("it is heard")
        until(lambda: part(last, RECORDER).state == "ok")
        assert len(list(runtime.glob("health-*"))) == 1
        result = last.stop()
    assert "marks" not in {one["source"] for one in result["missing"]}


def _published(runtime: Path) -> int | None:
    with suppress(OSError, ValueError):
        return int(json.loads((runtime / "recorder.json").read_text())["pid"])
    return None


# --- a full disk -----------------------------------------------------------------------------------------------------


@pytest.fixture
def full_disk(needs: Needs, tmp_path: Path) -> Iterator[Path]:
    needs.root()
    place = tmp_path / "disk"
    place.mkdir()
    assert os.system(f"mount -t tmpfs -o size=64k tmpfs {place}") == 0
    (place / "r" / "node=here" / "log").mkdir(parents=True)
    with (place / "ballast").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    yield place
    os.system(f"umount -l {place}")


def test_a_disk_that_is_full_from_the_start_is_reported_and_so_is_what_was_lost(runtime: Path, full_disk: Path) -> None:
    runtime.mkdir()
    runtime.chmod(0o1777)
    with subprocess.Popen(
        [*CLI, "record", str(full_disk / "r"), "--node", "here"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as recorder:
        assert recorder.stderr is not None
        said = next(line for line in recorder.stderr if os.strerror(errno.ENOSPC) in line)
        assert "disk writer cannot write" in said
        assert "(0 bytes are free)" in said
        code, document = status(str(full_disk / "r"))
        assert code == 3
        assert "disk writer" in {gap["source"] for gap in document["gaps"]}
        recorder.send_signal(signal.SIGTERM)
        out, _ = recorder.communicate(timeout=DEADLINE_S)
    assert recorder.returncode == 1
    assert re.search(r"\d+ s of \d+ s could not be written: No space left on device", out)
    assert list((full_disk / "r").rglob("*.seg")) == [], "no file is better than an empty one"


def test_a_disk_that_has_room_again_loses_nothing(runtime: Path, full_disk: Path) -> None:
    recorder = RecorderProcess(full_disk / "r", env={"ZOMBIESCOPE_RUNTIME_DIR": str(runtime)})
    runtime.mkdir(exist_ok=True)
    runtime.chmod(0o1777)
    try:
        until(lambda: part(recorder, "disk writer").state == "failed")
        (full_disk / "ballast").unlink()
        until(lambda: part(recorder, "disk writer").state == "ok")
        recorder.wait_for_frames(2)
        result = recorder.stop()
    finally:
        recorder.kill()
    assert result["unwritten_seconds"] == 0


# --- up --------------------------------------------------------------------------------------------------------------


class Up:
    """`zombiescope up` on a port of its own."""

    def __init__(self, home: Path, directory: Path) -> None:
        self.log = home / "up.log"
        with self.log.open("wb") as file:
            command = [*CLI, "up", str(directory), "--listen", "127.0.0.1:0"]
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=file)

    def said(self) -> str:
        return self.log.read_text()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(DEADLINE_S)


def pages(directory: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            words = (
                (entry / "cmdline").read_bytes().decode(errors="replace").split("\0") if entry.name.isdigit() else []
            )
            if "zombiescope.web" in words and f'"{directory}"' in words[-2]:
                found.append(int(entry.name))
    return found


def test_a_page_that_dies_is_reported_and_started_again(runtime: Path, tmp_path: Path) -> None:
    up = Up(tmp_path, tmp_path / "r")
    try:
        node_dir = tmp_path / "r" / f"node={os.uname().nodename}"

        def page() -> Part:
            return next((one for one in health.parts_of(node_dir) if one.name == "page"), Part("page", "off", 0.0))

        until(lambda: page().work > 0, "no page")
        (first,) = pages(tmp_path / "r")
        os.kill(first, signal.SIGKILL)
        until(lambda: "the page was killed (SIGKILL)" in up.said(), "nobody said so")
        until(lambda: "the page works again" in up.said(), "it was not started again")
        (second,) = pages(tmp_path / "r")
        assert second != first
        # WHEN the recorder is killed, THEN its page ends with it
        up.process.kill()
        up.process.wait()
        until(lambda: pages(tmp_path / "r") == [], "the page outlives its recorder")
    finally:
        up.stop()


def test_up_that_cannot_record_leaves_no_page_and_tells_no_token(runtime: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    up = Up(tmp_path, blocked / "r")
    assert up.process.wait(DEADLINE_S) == 1
    assert "cannot record into" in up.said()
    assert "#token=" not in up.said()
    assert pages(blocked / "r") == []
