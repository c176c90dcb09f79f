"""Scheduling and softirq tracepoints in overwrite rings: the last seconds of some cores, read only when they matter.

Each ring is a dummy event of one CPU with `write_backward`, and its memory is mapped read-only: the kernel then
overwrites the oldest records and no reader runs. To read one, it is paused (PERF_EVENT_IOC_PAUSE_OUTPUT, 4.7), copied
and resumed; records of that moment (a copy takes about 0.2 ms per MB) are lost.

    sched:sched_switch, sched_wakeup, sched_wakeup_new, sched_migrate_task
    irq:softirq_raise, softirq_entry, softirq_exit, irq_handler_entry, irq_handler_exit
    napi:napi_poll

A wakeup is written on the CPU of the waker, so all other CPUs have a small ring with the wakeups and migrations that
go to a watched CPU (a filter of the kernel).

Cost: about 0.2 us for a context switch and the same for its wakeup (docs/data/benchmarks.md), and the memory of the
rings, which counts against perf_event_mlock_kb and RLIMIT_MEMLOCK unless the process has CAP_IPC_LOCK."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from zombiescope._native import ScheduleDecoder, perf_event_open
from zombiescope.kernel import perf_event, tracefs

SWITCH, WAKEUP, MIGRATE, RAISE, ENTRY, EXIT, IRQ_ENTRY, IRQ_EXIT, POLL = range(1, 10)
"""Kinds, as native/schedule.pxi knows them."""

IOC_PAUSE_OUTPUT = 0x40042409
FLAG_WRITE_BACKWARD = 1 << 27
LEAST_RING_BYTES = 64 << 10
_SAMPLE = (
    perf_event.SAMPLE_IDENTIFIER | perf_event.SAMPLE_TID | perf_event.SAMPLE_TIME | perf_event.SAMPLE_RAW
)  # fmt: skip
_FORM = struct.Struct("<7HBB")
_NO_FIELD = 0xFFFF
_HEAD, _HEAD_AT = struct.Struct("<Q"), 1024


@dataclass(frozen=True, slots=True)
class Trace:
    """A tracepoint that the rings take: its fields by what they are to the decoder, and its filter for CPUs that are
    not watched ("": it is only opened on watched ones)."""

    group: str
    name: str
    kind: int
    a: str = ""
    b: str = ""
    c: str = ""
    text: str = ""
    other_text: str = ""
    elsewhere: str = ""
    needed: bool = False
    """Without it there is no use in the others."""

    @property
    def source(self) -> str:
        return f"tracepoint {self.group}:{self.name}"


TRACES = (
    Trace("sched", "sched_switch", SWITCH, "prev_pid", "next_pid", "prev_state", "prev_comm", "next_comm", needed=True),
    Trace("sched", "sched_wakeup", WAKEUP, "pid", "target_cpu", text="comm", elsewhere="target_cpu"),
    Trace("sched", "sched_wakeup_new", WAKEUP, "pid", "target_cpu", text="comm", elsewhere="target_cpu"),
    Trace("sched", "sched_migrate_task", MIGRATE, "pid", "dest_cpu", elsewhere="orig_cpu dest_cpu"),
    Trace("irq", "softirq_raise", RAISE, "vec"),
    Trace("irq", "softirq_entry", ENTRY, "vec"),
    Trace("irq", "softirq_exit", EXIT, "vec"),
    Trace("irq", "irq_handler_entry", IRQ_ENTRY, "irq", text="name"),
    Trace("irq", "irq_handler_exit", IRQ_EXIT, "irq"),
    Trace("napi", "napi_poll", POLL, text="dev_name"),
)
_EVERY_TICK = "vec != 1 && vec != 7 && vec != 8 && vec != 9"
"""Timer, scheduler, high-resolution timer and RCU softirqs come with every tick of a core and delay no card."""


@dataclass(frozen=True, slots=True)
class Traced:
    """A tracepoint of this kernel, and where its fields are."""

    trace: Trace
    number: int
    form: bytes


def form(trace: Trace, fields: Mapping[str, tracefs.Field]) -> bytes:
    """Where native/schedule.pxi finds the fields. Raises ValueError for one that this kernel does not have."""

    def place(name: str) -> int:
        if not name:
            return _NO_FIELD
        if name not in fields:
            raise ValueError(f"no field {name}")
        return fields[name].offset

    text = fields.get(trace.text)
    return _FORM.pack(
        place(trace.a), place(trace.b), place(trace.c), fields[trace.c].size if trace.c else 0, place(trace.text),
        text.size if text else 0, place(trace.other_text), trace.kind, bool(text and text.dynamic),
    )  # fmt: skip


def find(place: Path) -> tuple[list[Traced], list[tuple[Trace, str]]]:
    """The tracepoints of this kernel, and those that are missing with the reason."""
    found, missing = [], []
    for trace in TRACES:
        try:
            described = tracefs.read_format(place, trace.group, trace.name)
            found.append(Traced(trace, described.number, form(trace, described.fields)))
        except (OSError, ValueError) as error:
            missing.append((trace, (error.strerror or str(error)) if isinstance(error, OSError) else str(error)))
    return found, missing


@dataclass(slots=True)
class ScheduleRing:
    """The ring of one CPU."""

    cpu: int
    fd: int
    memory: mmap.mmap
    since_ns: int
    watched: bool
    fds: list[int] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    """Of the descriptors."""
    ids: list[tuple[int, bytes]] = field(default_factory=list)

    @property
    def ring_bytes(self) -> int:
        return len(self.memory) - mmap.PAGESIZE

    @property
    def written_bytes(self) -> int:
        """In all, since it was opened: data_head runs backward from 0."""
        return -int(_HEAD.unpack_from(self.memory, _HEAD_AT)[0]) & (1 << 64) - 1

    def pause(self, *, paused: bool) -> None:
        fcntl.ioctl(self.fd, IOC_PAUSE_OUTPUT, int(paused))

    def feed(self, decoder: ScheduleDecoder) -> None:
        """Paused, copied, resumed; then decoded."""
        self.pause(paused=True)
        try:
            now_ns = perf_event.monotonic_ns()
            head = int(_HEAD.unpack_from(self.memory, _HEAD_AT)[0])
            data = self.memory[mmap.PAGESIZE :]
        finally:
            self.pause(paused=False)
        for event_id, described in self.ids:
            decoder.register(event_id, described)
        decoder.feed(self.cpu, data, head, self.since_ns, now_ns, self.watched)

    def close(self) -> None:
        self.memory.close()
        for fd in (*self.fds, self.fd):
            os.close(fd)


def open_ring(cpu: int, traced: Iterable[Traced], ring_bytes: int, *, watched: Sequence[int]) -> ScheduleRing:
    """A ring that runs. Where so much memory may not be pinned it is smaller. Raises OSError: ENODEV for a CPU that is
    offline, EINVAL before Linux 4.7."""
    is_watched = cpu in watched
    fd = _open(perf_event.TYPE_SOFTWARE, perf_event.SOFTWARE_DUMMY, cpu)
    try:
        memory = _map(fd, ring_bytes)
    except OSError:
        os.close(fd)
        raise
    ring = ScheduleRing(cpu, fd, memory, perf_event.monotonic_ns(), is_watched)
    try:
        for one in traced:
            if is_watched or one.trace.elsewhere:
                _add(ring, one, watched)
    except OSError:
        ring.close()
        raise
    return ring


def _open(kind: int, config: int, cpu: int) -> int:
    attr = perf_event.packed_attr(
        kind, config, sample=_SAMPLE, flags=FLAG_WRITE_BACKWARD, period=1 if kind == perf_event.TYPE_TRACEPOINT else 0
    )
    return perf_event_open(attr, -1, cpu, -1, perf_event.OPEN_CLOEXEC)


def _map(fd: int, ring_bytes: int) -> mmap.mmap:
    """Read-only, which makes it an overwrite ring."""
    while True:
        try:
            return mmap.mmap(fd, mmap.PAGESIZE + ring_bytes, mmap.MAP_SHARED, mmap.PROT_READ)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOMEM) or ring_bytes <= LEAST_RING_BYTES:
                raise
            ring_bytes //= 2


def _add(ring: ScheduleRing, one: Traced, watched: Sequence[int]) -> None:
    fd = _open(perf_event.TYPE_TRACEPOINT, one.number, ring.cpu)
    try:
        fcntl.ioctl(fd, perf_event.IOC_SET_OUTPUT, ring.fd)
        where = _filter(one.trace, watched) if not ring.watched else ""
        if one.trace.kind in (RAISE, ENTRY, EXIT):
            where = _EVERY_TICK
        if where:
            fcntl.ioctl(fd, perf_event.IOC_SET_FILTER, where.encode() + b"\0")
        fcntl.ioctl(fd, perf_event.IOC_ENABLE, 0)
    except OSError:
        os.close(fd)
        raise
    ring.fds.append(fd)
    ring.traces.append(one.trace)
    ring.ids.append((perf_event.event_id(fd), one.form))


def refilter(ring: ScheduleRing, watched: Sequence[int]) -> None:
    """Other CPUs are watched now. Of a ring of one that is not."""
    for fd, trace in zip(ring.fds, ring.traces, strict=True):
        fcntl.ioctl(fd, perf_event.IOC_SET_FILTER, _filter(trace, watched).encode() + b"\0")


def _filter(trace: Trace, watched: Sequence[int]) -> str:
    return " || ".join(f"{name} == {cpu}" for name in trace.elsewhere.split() for cpu in watched)
