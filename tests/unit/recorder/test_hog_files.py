"""What a task in the kernel asks for: reads and files of a real program, and whom the recorder looks at."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from zombiescope.recorder import hog_files
from zombiescope.recorder.hog_files import Found, HogFiles, look
from zombiescope.recorder.sample_writer import TaskShare

READS = """
import sys
held = open("{held}", "rb", buffering=0)
print(flush=True)
while True:
    held.seek(0)
    held.read(7)
    for _ in range(50):
        with open("/proc/self/limits", "rb", buffering=0) as file:
            file.read(4096)
"""


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    (tmp_path / "held").write_bytes(b"x" * 100)
    program = READS.format(held=tmp_path / "held")
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child
        child.kill()


def test_reads_and_the_files_they_are_of(reader: subprocess.Popen[bytes]) -> None:
    found = look(reader.pid, reader.pid)
    assert found is not None
    assert found.reads is not None
    assert found.reads > 100
    assert any("/limits" in path for path in found.files), found
    text = found.event(5).text
    assert "system calls" in text
    assert found.files[0] in text


def test_a_process_that_is_gone_is_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    assert look(child.pid, child.pid, seconds=0.01) is None


def share(pid: int, kernel: int) -> TaskShare:
    return TaskShare("x", None, 99, kernel, pid=pid, tid=pid)


def test_only_who_stays_in_the_kernel_is_looked_at_and_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def seen(pid: int, tid: int, root: str) -> Found:
        looked.append(pid)
        return Found(pid, tid, "reader", 0.5, 6_000, 5_000, 0, ("/sys/fs/cgroup/memory.stat",))

    monkeypatch.setattr(hog_files, "look", seen)
    monkeypatch.setattr(hog_files, "EVERY_S", 0.0)
    told: list[str] = []
    one = HogFiles()
    one.tell = lambda event: told.append(event.text)
    for _ in range(40):
        one.hot([share(7, 90), share(8, 10)], 99, 1)
        time.sleep(0.01)
    assert looked == [7]
    assert told == ["reader (pid 7) makes 12,000 system calls a second, on /sys/fs/cgroup/memory.stat"]
    one.close()


def test_a_look_that_fails_is_told_once_and_does_not_end_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def fails(pid: int, tid: int, root: str) -> Found | None:
        looked.append(pid)
        if pid == 7:
            raise ValueError("broken by a test")
        return None

    monkeypatch.setattr(hog_files, "look", fails)
    monkeypatch.setattr(hog_files, "EVERY_S", 0.0)
    one, failures = HogFiles(), 0
    for _ in range(60):
        try:
            one.hot([share(7, 95), share(8, 90)], 99, 1)
        except ValueError:
            failures += 1
        time.sleep(0.01)
    assert (looked, failures) == ([7, 8], 1)
    one.close()
