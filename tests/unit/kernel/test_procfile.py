"""Kernel files read through a kept descriptor, on the live machine."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from zombiescope.kernel import cgroup, procfile
from zombiescope.kernel.procfile import ProcFile


def _open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_reads_a_file_of_many_pages_to_its_end() -> None:
    # GIVEN a seq_file that hands out a page at a time
    file = ProcFile("/proc/kallsyms")

    # WHEN it is read through the kept descriptor and, for comparison, at once
    data = file.read()

    # THEN both saw all of it
    assert data is not None
    assert len(data) > 1_000_000
    assert data.count(b"\n") == Path("/proc/kallsyms").read_bytes().count(b"\n")
    file.close()


def test_each_read_is_of_now_and_uses_one_descriptor() -> None:
    file = ProcFile("/proc/uptime")
    first = file.read()
    before = _open_descriptors()

    time.sleep(0.03)
    later = file.read()

    assert first is not None
    assert later is not None
    assert float(first.split()[0]) < float(later.split()[0])
    assert _open_descriptors() == before
    file.close()
    assert _open_descriptors() == before - 1


def test_an_absent_file_is_none_with_the_reason_and_is_found_when_it_appears(tmp_path: Path) -> None:
    path = tmp_path / "count"
    file = ProcFile(str(path))
    reasons = []
    for content in (None, b"1\n"):
        if content is not None:
            path.write_bytes(content)
        assert file.read() == content
        reasons.append(file.why)
    file.close()
    assert reasons == [os.strerror(errno.ENOENT), None]


def test_a_read_error_is_none_with_the_reason(tmp_path: Path) -> None:
    file = ProcFile(str(tmp_path))
    assert file.read() is None
    assert file.why == os.strerror(errno.EISDIR)
    file.close()


@pytest.mark.parametrize("code", [errno.ENODEV, errno.ESTALE, errno.EBADF])
def test_an_object_made_anew_is_opened_again_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    # GIVEN an open file whose object is replaced, so that the descriptor answers an error
    path = tmp_path / "count"
    path.write_bytes(b"old\n")
    file = ProcFile(str(path))
    assert file.read() == b"old\n"
    path.unlink()
    path.write_bytes(b"new\n")
    pread = os.pread
    failures = iter([OSError(code, "gone")])

    def failing_once(fd: int, size: int, offset: int) -> bytes:
        for failure in failures:
            raise failure
        return pread(fd, size, offset)

    monkeypatch.setattr(os, "pread", failing_once)

    # WHEN it is read again THEN it is the new object's content
    assert file.read() == b"new\n"
    file.close()


def test_a_descriptor_closed_by_someone_else_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "count"
    path.write_bytes(b"1\n")
    file = ProcFile(str(path))
    file.read()
    os.close(file._fd)

    assert file.read() == b"1\n"
    file.close()


@pytest.mark.kernel
def test_a_real_cgroup_removed_and_made_again(needs: Any) -> None:
    # GIVEN the open file of a cgroup
    needs.root()
    memory = cgroup.of_controller("memory", cgroup.hierarchies())
    assert memory is not None
    directory = Path(f"{memory.mount}/zombiescope-file-{os.getpid()}")
    directory.mkdir()
    file = ProcFile(f"{directory}/cgroup.procs")
    assert file.read() == b""

    # WHEN the cgroup goes THEN the file is absent; WHEN one of the same name is made THEN it is read
    try:
        directory.rmdir()
        assert file.read() is None
        assert file.why == os.strerror(errno.ENOENT)
    finally:
        directory.mkdir(exist_ok=True)
    again = file.read()
    directory.rmdir()
    file.close()
    assert again == b""


def test_a_task_that_ended_stays_ended() -> None:
    # GIVEN the open schedstat of a process
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        file = ProcFile(f"/proc/{child.pid}/schedstat")
        assert file.read() is not None

        # WHEN it has ended and been reaped
        child.communicate(b"\n")

        # THEN its number is not looked up again, whoever has it now
        assert file.read() is None
        assert file.why == os.strerror(errno.ESRCH)
    file.close()


def test_read_file_gives_the_descriptor_back() -> None:
    before = _open_descriptors()
    assert procfile.read_file("/proc/self/stat")
    assert procfile.read_file("/proc/self") is None
    assert procfile.read_file("/proc/no/such/file") is None
    assert _open_descriptors() == before


@pytest.mark.parametrize(
    ("text", "value"), [(b"0", 0), (b"18446744073709551615", (1 << 64) - 1), (b"-1", None), (b"", None)]
)
def test_number(text: bytes, value: int | None) -> None:
    assert procfile.number(text) == value


def test_number_refuses_what_no_counter_can_hold() -> None:
    assert procfile.number(b"9" * 5000) is None


def test_at_accepts_the_root_and_trees() -> None:
    assert procfile.at("/", "proc/stat") == "/proc/stat"
    assert procfile.at("/mnt/image/", "proc/stat") == "/mnt/image/proc/stat"
