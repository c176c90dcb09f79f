"""perf_event_open(2): the stack sampler and the tracepoints of one CPU, all writing into one ring.

The attribute structure is packed here in the size of Linux 4.8 (112 bytes); newer kernels take it as it is, and a
kernel that does not know a flag answers EINVAL, so features are probed newest first and given up one by one:
    cgroup     5.7   samples carry the cgroup id of the perf_event controller's hierarchy, CGROUP records its path
    ksymbol    5.1   BPF programs and trampolines are announced

Build ids in MMAP2 records (5.12) are not asked for: the kernel then marks the records of every other listener of the
node as if they had one too (perf_event_mmap_output() does not take the mark back): a `perf record` beside us aborts.

Conditions under which events may share a ring (same cpu, same clock, IDENTIFIER everywhere) hold by construction.
CLOCK_MONOTONIC: tracepoints refuse BOOTTIME and REALTIME.

Opening needs CAP_PERFMON (CAP_SYS_ADMIN before 5.8), or perf_event_paranoid <= -1. A ring of 512 kB a CPU is within
what kernel.perf_event_mlock_kb allows everybody; larger ones count against RLIMIT_MEMLOCK."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
import time
from dataclasses import dataclass, field, replace

from zombiescope._native import perf_event_open
from zombiescope.base.time import CPU_CLOCK, CYCLES, DEFAULT_HZ

TYPE_HARDWARE, TYPE_SOFTWARE, TYPE_TRACEPOINT = 0, 1, 2
HARDWARE_CPU_CYCLES, SOFTWARE_CPU_CLOCK, SOFTWARE_DUMMY = 0, 0, 9

SAMPLE_TID, SAMPLE_TIME, SAMPLE_CALLCHAIN, SAMPLE_CPU = 1 << 1, 1 << 2, 1 << 5, 1 << 7
SAMPLE_PERIOD, SAMPLE_RAW, SAMPLE_IDENTIFIER, SAMPLE_CGROUP = 1 << 8, 1 << 10, 1 << 16, 1 << 21
SAMPLE_REGS_USER, SAMPLE_STACK_USER = 1 << 12, 1 << 13
SAMPLE_COMMON = SAMPLE_IDENTIFIER | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU

FLAG_DISABLED, FLAG_MMAP, FLAG_COMM, FLAG_FREQ, FLAG_TASK = 1 << 0, 1 << 8, 1 << 9, 1 << 10, 1 << 13
FLAG_WATERMARK, FLAG_SAMPLE_ID_ALL, FLAG_MMAP2, FLAG_COMM_EXEC = 1 << 14, 1 << 18, 1 << 23, 1 << 24
FLAG_USE_CLOCKID, FLAG_KSYMBOL, FLAG_BPF_EVENT = 1 << 25, 1 << 29, 1 << 30
FLAG_CGROUP = 1 << 32

FORMAT_LOST = 1 << 4  # 6.0: read(2) also gives how many records did not fit into the ring

OPEN_CLOEXEC = 1 << 3
IOC_ENABLE, IOC_DISABLE, IOC_SET_OUTPUT = 0x2400, 0x2401, 0x2405
IOC_SET_FILTER, IOC_ID = 0x40082406, 0x80082407

_ATTR = struct.Struct("<IIQQQQQIIQQQQIiQIHH")
_CLOCK_MONOTONIC = 1
_STACK_REGISTERS = 1 << 6 | 1 << 7 | 1 << 8  # rbp, rsp, rip of x86-64 (asm/perf_regs.h)
_ENDS, _ENDS_AT = struct.Struct("<QQ"), 1024


SILENT = "dummy"
"""PERF_COUNT_SW_DUMMY, which never fires."""


class RingMemoryError(OSError):
    """The event was opened, and its ring could not be pinned."""


@dataclass(frozen=True, slots=True)
class Features:
    """What this kernel puts into its records."""

    cgroup: bool = True
    ksymbol: bool = True
    lost_count: bool = True


@dataclass(frozen=True, slots=True)
class Clock:
    """What makes a CPU's stack be taken: cpu-clock ticks of wall time, or hardware cycles that stop when halted; or
    nothing, on a core that is not to be interrupted: then the ring has tracepoints and the records of processes."""

    name: str = CPU_CLOCK
    hz: int = DEFAULT_HZ
    period: int = 0
    """A sample every so many cycles, whatever the frequency of the core; 0: `hz` of them a second."""

    @property
    def has_period(self) -> bool:
        return self.name == CYCLES

    @property
    def is_silent(self) -> bool:
        return self.name == SILENT


def packed_attr(
    kind: int, config: int, *, sample: int, flags: int, period: int, watermark: int = 0, read_format: int = 0,
    wakes: bool = False,
) -> bytes:  # fmt: skip
    """With `wakes` the number that stands for the watermark counts records and not bytes."""
    return _ATTR.pack(
        kind, _ATTR.size, config, period, sample, read_format,
        flags | FLAG_DISABLED | FLAG_SAMPLE_ID_ALL | (0 if wakes else FLAG_WATERMARK) | FLAG_USE_CLOCKID,
        watermark, 0, 0, 0, 0, 0, 0, _CLOCK_MONOTONIC, 0, 0, 0, 0,
    )  # fmt: skip


def _open_sampler(cpu: int, clock: Clock, features: Features, watermark: int) -> int:
    sample = SAMPLE_COMMON | SAMPLE_CALLCHAIN
    flags = FLAG_MMAP | FLAG_MMAP2 | FLAG_COMM | FLAG_COMM_EXEC | FLAG_TASK | FLAG_FREQ
    kind, config = TYPE_SOFTWARE, SOFTWARE_CPU_CLOCK
    if clock.has_period:
        kind, config, sample = TYPE_HARDWARE, HARDWARE_CPU_CYCLES, sample | SAMPLE_PERIOD
    if features.ksymbol:
        flags |= FLAG_KSYMBOL | FLAG_BPF_EVENT
    if features.cgroup:
        flags |= FLAG_CGROUP
        sample |= SAMPLE_CGROUP
    period = clock.hz
    if clock.period:
        flags, period = flags & ~FLAG_FREQ, clock.period
    if clock.is_silent:
        kind, config, flags, period = TYPE_SOFTWARE, SOFTWARE_DUMMY, flags & ~FLAG_FREQ, 0
    attr = packed_attr(kind, config, sample=sample, flags=flags, period=period, watermark=watermark)
    return perf_event_open(attr, -1, cpu, -1, OPEN_CLOEXEC)


def probe(cpu: int, clock: Clock) -> Features:
    """The newest features this kernel takes. Raises OSError when sampling is not possible at all."""
    features = Features()
    for step in ("cgroup", "ksymbol", None):
        try:
            os.close(_open_sampler(cpu, clock, features, 0))
        except OSError as error:
            if error.errno != errno.EINVAL or step is None:
                raise
            features = replace(features, **{step: False})
        else:
            break
    return features


@dataclass(slots=True)
class CopyRing:
    """One thread's event: now and then its registers, and so many bytes of its stack."""

    fd: int
    memory: mmap.mmap

    def close(self) -> None:
        self.memory.close()
        os.close(self.fd)


def open_stack_copies(tid: int, hz: int, stack_bytes: int, ring_pages: int) -> CopyRing:
    """Follows one thread on all CPUs, `hz` times for each second that it runs. Raises OSError.

    A thread of another user needs CAP_PERFMON, as sampling does; the ring is pinned memory, and counts as that."""
    attr = _ATTR.pack(
        TYPE_SOFTWARE, _ATTR.size, SOFTWARE_CPU_CLOCK, hz,
        SAMPLE_COMMON | SAMPLE_CALLCHAIN | SAMPLE_REGS_USER | SAMPLE_STACK_USER, 0,
        FLAG_SAMPLE_ID_ALL | FLAG_FREQ | FLAG_USE_CLOCKID, 0, 0, 0, 0, 0, _STACK_REGISTERS, stack_bytes,
        _CLOCK_MONOTONIC, 0, 0, 0, 0,
    )  # fmt: skip
    fd = perf_event_open(attr, tid, -1, -1, OPEN_CLOEXEC)
    try:
        memory = mmap.mmap(fd, (1 + ring_pages) * mmap.PAGESIZE, mmap.MAP_SHARED)
    except BaseException:
        os.close(fd)
        raise
    return CopyRing(fd, memory)


def enable(fd: int) -> None:
    fcntl.ioctl(fd, IOC_ENABLE, 0)


def event_id(fd: int) -> int:
    """The id that the records of this event carry."""
    buffer = bytearray(8)
    fcntl.ioctl(fd, IOC_ID, buffer)
    return int.from_bytes(buffer, "little")


@dataclass(slots=True)
class CpuRing:
    """The events of one CPU and the ring they write into."""

    cpu: int
    fd: int
    memory: mmap.mmap
    ids: list[tuple[int, int]]  # (event id, kind): kind 0 is the sampler, n the n-th tracepoint
    tracepoint_fds: list[int] = field(default_factory=list)
    lost_count: bool = True

    def add_tracepoint(self, kind: int, config: int, where: str | None, *, wakes: bool = False) -> None:
        """Sends a tracepoint's records into this ring, those that match the filter `where`; with `wakes` each of them
        wakes whoever polls the ring, however little is in it."""
        fd = self._open_tracepoint(config, wakes=wakes)
        try:
            fcntl.ioctl(fd, IOC_SET_OUTPUT, self.fd)
            if where is not None:
                fcntl.ioctl(fd, IOC_SET_FILTER, where.encode() + b"\0")
            fcntl.ioctl(fd, IOC_ENABLE, 0)
        except OSError:
            os.close(fd)
            raise
        self.tracepoint_fds.append(fd)
        self.ids.append((event_id(fd), kind))

    def _open_tracepoint(self, config: int, *, wakes: bool) -> int:
        for read_format in (FORMAT_LOST, 0) if self.lost_count else (0,):
            attr = packed_attr(
                TYPE_TRACEPOINT, config, sample=SAMPLE_COMMON | SAMPLE_RAW, flags=0, period=1, watermark=1,
                read_format=read_format, wakes=wakes,
            )  # fmt: skip
            try:
                return perf_event_open(attr, -1, self.cpu, -1, OPEN_CLOEXEC)
            except OSError as error:
                if error.errno != errno.EINVAL or read_format == 0:
                    raise
                self.lost_count = False
        raise AssertionError("unreachable")

    def enable(self) -> None:
        fcntl.ioctl(self.fd, IOC_ENABLE, 0)

    def used_bytes(self) -> int:
        """What the kernel has written and nobody has read: data_head and data_tail of the ring's first page."""
        head, tail = _ENDS.unpack_from(self.memory, _ENDS_AT)
        return int(head - tail)

    def counts(self) -> list[int]:
        """How often each tracepoint fired on this CPU since it was opened, whether its record fitted or not."""
        return [int.from_bytes(os.read(fd, 64)[:8], "little") for fd in self.tracepoint_fds]

    def close(self) -> None:
        for fd in self.tracepoint_fds:
            os.close(fd)
        self.tracepoint_fds.clear()
        os.close(self.fd)


def open_ring(cpu: int, clock: Clock, features: Features, ring_bytes: int) -> CpuRing:
    """Opens the sampler of one CPU with its ring, not yet enabled. Raises OSError."""
    fd = _open_sampler(cpu, clock, features, ring_bytes // 4)
    try:
        memory = mmap.mmap(fd, mmap.PAGESIZE + ring_bytes, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    except OSError as error:
        os.close(fd)
        raise RingMemoryError(error.errno, error.strerror) from error
    return CpuRing(cpu, fd, memory, [(event_id(fd), 0)], lost_count=features.lost_count)


def monotonic_ns() -> int:
    """The clock of every record."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
