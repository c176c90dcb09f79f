"""Perf records as the kernel lays them out, for feeding the decoder."""

from __future__ import annotations

import struct

KERNEL, USER = (1 << 64) - 128, (1 << 64) - 512
CLOCK_ID = 7


def record(kind: int, body: bytes, *, misc: int = 0) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def trailer(pid: int, tid: int, time: int, cpu: int = 0) -> bytes:
    return struct.pack("<IIQIIQ", pid, tid, time, cpu, 0, CLOCK_ID)


def padded(text: bytes) -> bytes:
    text += b"\0"
    return text + b"\0" * (-len(text) % 8)


def sample(pid: int, tid: int, time: int, chain: list[int], *, event: int = CLOCK_ID, cpu: int = 0) -> bytes:
    head = struct.pack("<QIIQIIQ", event, pid, tid, time, cpu, 0, len(chain))
    return record(9, head + struct.pack(f"<{len(chain)}Q", *chain))


def raw_sample(event: int, pid: int, time: int, raw: bytes, *, cpu: int = 0) -> bytes:
    room = -(-(4 + len(raw)) // 8) * 8 - 4
    return record(9, struct.pack("<QIIQIII", event, pid, pid, time, cpu, 0, room) + raw.ljust(room, b"\0"))


def comm(pid: int, tid: int, name: bytes, time: int, *, is_exec: bool = False) -> bytes:
    misc = 1 << 13 if is_exec else 0
    return record(3, struct.pack("<II", pid, tid) + padded(name) + trailer(pid, tid, time), misc=misc)


def fork(pid: int, ppid: int, tid: int, ptid: int, time: int) -> bytes:
    return record(7, struct.pack("<IIIIQ", pid, ppid, tid, ptid, time) + trailer(ppid, ptid, time))


def leave(pid: int, tid: int, time: int) -> bytes:
    return record(4, struct.pack("<IIIIQ", pid, 1, tid, 1, time) + trailer(pid, tid, time))


def lost(count: int, time: int) -> bytes:
    return record(2, struct.pack("<QQ", CLOCK_ID, count) + trailer(0, 0, time))


def mmap2(
    pid: int, start: int, length: int, pgoff: int, name: bytes, time: int, build_id: bytes | None = None
) -> bytes:
    if build_id is not None:
        what, misc = struct.pack("<B3x20s", len(build_id), build_id), 1 << 14
    else:
        what, misc = struct.pack("<IIQQ", 8, 1, 4242, 0), 0
    body = struct.pack("<IIQQQ", pid, pid, start, length, pgoff) + what + struct.pack("<II", 5, 2) + padded(name)
    return record(10, body + trailer(pid, pid, time), misc=misc)


def ksymbol(address: int, length: int, name: bytes, time: int, *, gone: bool = False) -> bytes:
    body = struct.pack("<QIHH", address, length, 1, int(gone)) + padded(name)
    return record(17, body + trailer(0, 0, time))
