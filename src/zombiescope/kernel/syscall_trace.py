"""System calls of some threads, as the kernel counts and records them: raw_syscalls:sys_enter and sys_exit.

    <tracefs>/events/raw_syscalls/sys_enter    id s64 @8, args u64[6] @16
    <tracefs>/events/raw_syscalls/sys_exit     id s64 @8, ret s64 @16

Each thread has its own events (pid = thread, any CPU), so no other task fires them; but while any is open, every system
call of the node takes the slower entry (about 0.1 us). A counted call costs its thread some 0.3 us, a recorded one
1.3 us. A ring is read once, after its events are switched off: the kernel drops what no longer fits, so nothing here
grows. CONFIG_FTRACE_SYSCALLS is needed, and CAP_PERFMON."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from zombiescope._native import perf_event_open
from zombiescope.kernel import perf_event, tracefs

ENTER, EXIT = "sys_enter", "sys_exit"
GROUP = "raw_syscalls"
LEAST_RING_BYTES = 16 << 10
_SAMPLE = perf_event.SAMPLE_IDENTIFIER | perf_event.SAMPLE_TID | perf_event.SAMPLE_TIME | perf_event.SAMPLE_RAW
_HEAD, _HEAD_AT = struct.Struct("<Q"), 1024
_RECORD, _RAW_AT = struct.Struct("<IHHQIIQI"), 36
_ENTERED, _LEFT = struct.Struct("<q6Q"), struct.Struct("<qq")
_FIELDS_AT = 8
_RECORD_SAMPLE = 9


@dataclass(frozen=True, slots=True)
class Points:
    """The two tracepoints of this kernel."""

    enter: int
    exit: int


@dataclass(frozen=True, slots=True)
class Call:
    """One system call. `began_ns` None: before the trace; `ended_ns` None: it goes on."""

    number: int
    args: tuple[int, ...] | None
    began_ns: int | None
    ended_ns: int | None
    returned: int | None

    @property
    def took_ns(self) -> int | None:
        return None if self.began_ns is None or self.ended_ns is None else self.ended_ns - self.began_ns


def find(place: Path) -> Points:
    """Raises OSError where the kernel has them not or they may not be read, and ValueError for a layout that is not
    known."""
    numbers = []
    for name, fields in ((ENTER, {"id": 8, "args": 16}), (EXIT, {"id": 8, "ret": 16})):
        described = tracefs.read_format(place, GROUP, name)
        if any(key not in described.fields or described.fields[key].offset != at for key, at in fields.items()):
            raise ValueError(f"{GROUP}:{name} has another layout")
        numbers.append(described.number)
    return Points(*numbers)


class ThreadTrace:
    """The calls of one thread: counted first, then recorded. Raises OSError: ESRCH where it is gone, EACCES or EPERM
    where it may not be followed."""

    def __init__(self, tid: int, points: Points, ring_bytes: int) -> None:
        self.tid = tid
        self._counter = _open(points.enter, tid, recorded=False)
        self._fds = [self._counter]
        try:
            self._enter = _open(points.enter, tid, recorded=True)
            self._fds.append(self._enter)
            self._memory = _map(self._enter, ring_bytes)
            self._exit = _open(points.exit, tid, recorded=True)
            self._fds.append(self._exit)
            fcntl.ioctl(self._exit, perf_event.IOC_SET_OUTPUT, self._enter)
            self._ids = {perf_event.event_id(self._enter): ENTER, perf_event.event_id(self._exit): EXIT}
        except OSError:
            self.close()
            raise

    @property
    def ring_bytes(self) -> int:
        return len(self._memory) - mmap.PAGESIZE

    def count(self, *, on: bool) -> None:
        fcntl.ioctl(self._counter, perf_event.IOC_ENABLE if on else perf_event.IOC_DISABLE, 0)

    @property
    def counted(self) -> int:
        return int.from_bytes(os.read(self._counter, 8), "little")

    def record(self, *, on: bool) -> None:
        for fd in (self._enter, self._exit):
            fcntl.ioctl(fd, perf_event.IOC_ENABLE if on else perf_event.IOC_DISABLE, 0)

    @property
    def is_full(self) -> bool:
        return self._head >= self.ring_bytes * 9 // 10

    @property
    def _head(self) -> int:
        return int(_HEAD.unpack_from(self._memory, _HEAD_AT)[0])

    def calls(self) -> Iterator[Call]:
        """In order. Only when recording is off."""
        end = min(self._head, self.ring_bytes)
        data = memoryview(self._memory)[mmap.PAGESIZE : mmap.PAGESIZE + end]
        try:
            yield from _paired(self._records(data))
        finally:
            data.release()

    def _records(self, data: memoryview) -> Iterator[tuple[str, int, int, tuple[int, ...]]]:
        """(enter or exit, time, number of the call, its arguments or what it returned)."""
        at = 0
        while at + 8 <= len(data):
            kind, _, size = struct.unpack_from("<IHH", data, at)
            if size < 8 or at + size > len(data):
                return
            if kind == _RECORD_SAMPLE and size >= _RAW_AT + _FIELDS_AT:
                _, _, _, event, _, _, time_ns, length = _RECORD.unpack_from(data, at)
                point, fields = self._ids.get(event), at + _RAW_AT + _FIELDS_AT
                form = _ENTERED if point == ENTER else _LEFT
                if point is not None and length >= _FIELDS_AT + form.size and fields + form.size <= at + size:
                    number, *rest = form.unpack_from(data, fields)
                    yield point, time_ns, number, tuple(rest)
            at += size

    def close(self) -> None:
        with suppress(AttributeError, BufferError):
            self._memory.close()
        for fd in self._fds:
            os.close(fd)
        self._fds = []


def _paired(records: Iterator[tuple[str, int, int, tuple[int, ...]]]) -> Iterator[Call]:
    began: tuple[int, int, tuple[int, ...]] | None = None
    for point, time_ns, number, values in records:
        if point == ENTER:
            if began is not None:  # it never comes back: exit, or an exec that replaced the program
                yield Call(began[1], began[2], began[0], None, None)
            began = time_ns, number, values
        elif began is not None and began[1] == number:
            yield Call(number, began[2], began[0], time_ns, values[0])
            began = None
        elif began is None:
            yield Call(number, None, None, time_ns, values[0])
    if began is not None:
        yield Call(began[1], began[2], began[0], None, None)


def _open(number: int, tid: int, *, recorded: bool) -> int:
    attr = perf_event.packed_attr(
        perf_event.TYPE_TRACEPOINT, number, sample=_SAMPLE if recorded else 0, flags=0, period=1 if recorded else 0
    )
    return perf_event_open(attr, tid, -1, -1, perf_event.OPEN_CLOEXEC)


def _map(fd: int, ring_bytes: int) -> mmap.mmap:
    """Smaller where so much memory may not be pinned."""
    while True:
        try:
            return mmap.mmap(fd, mmap.PAGESIZE + ring_bytes, mmap.MAP_SHARED)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOMEM) or ring_bytes <= LEAST_RING_BYTES:
                raise
            ring_bytes //= 2
