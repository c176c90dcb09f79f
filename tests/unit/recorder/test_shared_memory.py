"""/dev/shm of the node and of containers, and who was killed by SIGBUS."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest

from zombiescope.kernel.tracefs import parse
from zombiescope.recorder import shared_memory
from zombiescope.recorder.shared_memory import Room, SharedMemory, room
from zombiescope.recorder.tick import Tick
from zombiescope.recorder.tracepoints import TraceRecord

MB = 1 << 20
ONE, TWO = f"{0xA1:064x}", f"{0xA2:064x}"
FORMAT = """\
name: signal_generate
ID: 261
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:int sig;\toffset:8;\tsize:4;\tsigned:1;
\tfield:int errno;\toffset:12;\tsize:4;\tsigned:1;
\tfield:int code;\toffset:16;\tsize:4;\tsigned:1;
\tfield:char comm[16];\toffset:20;\tsize:16;\tsigned:0;
\tfield:pid_t pid;\toffset:36;\tsize:4;\tsigned:1;

print fmt: "sig=%d", REC->sig
"""


def tick(number: int) -> Tick:
    return Tick(number * 10**9, number * 1_000_000, 1_000_000)


def read_once(one: SharedMemory, number: int) -> None:
    one._due_s = 0
    one.tick(tick(number))
    end = time.monotonic() + 10
    while one._wanted is not None:
        assert time.monotonic() < end
        time.sleep(0.005)
    one.tick(tick(number + 1))


def test_what_is_half_full_is_written_and_a_shared_mount_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, pid in (("a", 11), ("b", 12), ("c", 13)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.procs").write_text(f"{pid}\n{pid + 100}\n")
    rooms = {
        f"{tmp_path}/dev/shm": Room(MB, 1000 * MB, 1),
        f"{tmp_path}/proc/11/root/dev/shm": Room(63 * MB, 64 * MB, 2),
        f"{tmp_path}/proc/12/root/dev/shm": Room(63 * MB, 64 * MB, 2),
    }
    monkeypatch.setattr(shared_memory, "room", rooms.get)
    written: list[tuple[str, str | None, int]] = []
    places = [(ONE, str(tmp_path / "a")), (TWO, str(tmp_path / "b")), (f"{3:064x}", str(tmp_path / "c"))]
    shm = SharedMemory(
        lambda _, __, name, key, value: written.append((name, key, value)), lambda: places, str(tmp_path)
    )
    read_once(shm, 1)
    assert written == [("used_bytes", ONE[:12], 63 * MB), ("size_bytes", ONE[:12], 64 * MB)]
    rooms[f"{tmp_path}/proc/11/root/dev/shm"] = Room(0, 64 * MB, 2)
    read_once(shm, 3)
    assert written[-2:] == [("used_bytes", ONE[:12], 0), ("size_bytes", ONE[:12], 64 * MB)]  # that it is empty again
    shm.close()


def test_a_directory_that_is_no_mount_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "dev/shm").mkdir(parents=True)
    assert room(f"{tmp_path}/dev/shm") is None
    assert room(f"{tmp_path}/gone/dev/shm") is None


@pytest.mark.parametrize(("code", "told"), [(2, True), (4, False), (1, False), (0, False)])
def test_a_page_that_is_not_there_is_told_from_other_reasons(code: int, told: bool) -> None:
    shm = SharedMemory(lambda *_: None, list)
    raw = struct.pack("<HBBi iii16si", 261, 0, 0, 1, 7, 0, code, b"python3", 4711)
    form = parse(FORMAT.encode())
    found = shm._signalled(TraceRecord(1, 1, 0, 4711, 4711, raw), form.fields, 5)
    assert [(one.kind, one.fields["pid"], one.fields["comm"]) for one in found] == (
        [("sigbus", 4711, "python3")] * told
    )
    assert shm.tracepoint().where == "sig == 7"
    shm.close()
