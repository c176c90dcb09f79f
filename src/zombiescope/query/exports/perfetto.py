"""Perfetto's trace format (perfetto.protos.Trace), for ui.perfetto.dev and its SQL: cores are tracks.

Each core has a track whose slices say which task was sampled there, from its first sample until the core did something
else or was idle. Beside it stand the samples themselves with their whole stacks, by process and thread. The clock is
the node's wall clock.

Where a snapshot of the schedule is in the window (query/delays.py), each core has a second track with what the
scheduler itself said ran there, and each victim one with its waits for that core: those are measured.

A slice of samples is an inference: two of one task, no further apart than two periods, are one stretch. What ran
between two samples is not in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from zombiescope.query.delays import named, slices
from zombiescope.query.exports.interner import Interner
from zombiescope.query.exports.protobuf import integer, message, text
from zombiescope.query.exports.samples import SECOND_NS, ExportSamples, ProfileTask, SampleBatch, module_of
from zombiescope.store.stacks import KERNEL_KINDS

SEQUENCE = 1
STATE_CLEARED, NEEDS_STATE = 1, 2
SLICE_BEGIN, SLICE_END = 1, 2
REALTIME = 1
"""Perfetto's clock for wall-clock time."""
MODE_KERNEL, MODE_USER = 1, 2
CORES, SCHEDULES = 1 << 32, 1 << 33
"""Track ids of cores begin here, and those of snapshots of the schedule."""
PERIODS_APART = 2.0
DEFAULT_PERIOD_NS = SECOND_NS // 99


def write(samples: ExportSamples, out: BinaryIO) -> None:
    for packet in _packets(samples):
        out.write(message(1, packet))


def _packets(samples: ExportSamples) -> Iterator[bytes]:
    names = _Names(samples)
    yield _head(samples)
    yield _processes(samples)
    rows = samples.everything()
    cpus = [cpu for cpu in np.unique(rows.cpu).tolist() if cpu >= 0]
    yield from (_core(cpu) for cpu in cpus)
    gap_us = PERIODS_APART * (samples.period_ns or DEFAULT_PERIOD_NS) / 1000
    for cpu in cpus:
        yield from _slices(samples, rows.cut(rows.cpu == cpu), cpu, gap_us)
    yield from _schedule(samples)
    yield from _samples(samples, rows, names)


def _schedule(samples: ExportSamples) -> Iterator[bytes]:
    """What ran and what waited, core by core. Slices of one track must not overlap, so each victim has its own."""
    tracks: dict[tuple[int, str], int] = {}
    ends: dict[int, int] = {}
    for kind, cpu, begin, end, party, name in slices(samples.selection.recording, *samples.selection.span):
        who = name or "?" if party is None else named(party)
        title = f"core {cpu:03d} schedule" if kind == "run" else f"core {cpu:03d} waits: {who}"
        if kind not in ("run", "wait", "softirq wait"):
            continue
        if (cpu, title) not in tracks:
            tracks[cpu, title] = track = SCHEDULES + len(tracks)
            yield integer(10, SEQUENCE) + message(60, integer(1, track) + text(2, title))
        track = tracks[cpu, title]
        begin = max(begin, ends.get(track, 0))
        if begin < end:
            ends[track] = end
            yield _packet(begin, _event(track, SLICE_BEGIN, who, "schedule"))
            yield _packet(end, _event(track, SLICE_END))


def _packet(time_us: int, body: bytes, flags: int = NEEDS_STATE) -> bytes:
    stamp = integer(8, time_us * 1000) + integer(58, REALTIME)
    return stamp + integer(10, SEQUENCE) + integer(13, flags) + body


def _head(samples: ExportSamples) -> bytes:
    """The clock: everything here is wall-clock time."""
    clock = message(1, integer(1, REALTIME) + integer(2, samples.selection.span[0] * 1000))
    snapshot = message(6, clock + integer(2, REALTIME))
    return integer(10, SEQUENCE) + integer(13, STATE_CLEARED) + snapshot


def _processes(samples: ExportSamples) -> bytes:
    known: dict[int, ProfileTask] = {}
    threads: list[bytes] = []
    for task in samples.tasks:
        if task.pid is None:
            continue
        if task.pid not in known or task.tid == task.pid:
            known[task.pid] = task
        if task.tid is not None:
            name = text(2, task.comm) if task.comm else b""
            threads.append(message(2, integer(1, task.tid) + name + integer(3, task.pid)))
    processes = [message(1, integer(1, pid) + text(3, _name(task))) for pid, task in known.items()]
    return _packet(samples.selection.span[0], message(2, b"".join([*processes, *threads])))


def _name(task: ProfileTask) -> str:
    owner = task.owner
    return f"{task.comm or '?'} ({owner})" if owner else task.comm or "?"


def _core(cpu: int) -> bytes:
    """Parents of nothing: they stand at the top, in the order of their numbers."""
    return integer(10, SEQUENCE) + message(60, integer(1, CORES + cpu) + text(2, f"core {cpu:03d}"))


def _slices(samples: ExportSamples, rows: SampleBatch, cpu: int, gap_us: float) -> Iterator[bytes]:
    """Stretches of one task on a core."""
    order = np.argsort(rows.time_us, kind="stable")
    times, tasks = rows.time_us[order], rows.task[order]
    if not len(times):
        return
    new = np.flatnonzero((np.diff(tasks) != 0) | (np.diff(times) > gap_us)) + 1
    starts, ends = np.concatenate([[0], new]), np.append(new, len(times))
    lasts_us = round(gap_us / PERIODS_APART)
    for first, end in zip(starts.tolist(), ends.tolist(), strict=True):
        until = int(times[end - 1]) + lasts_us
        if end < len(times):
            until = min(until, int(times[end]))
        yield _packet(int(times[first]), _event(CORES + cpu, SLICE_BEGIN, _name(samples.tasks[int(tasks[first])])))
        yield _packet(until, _event(CORES + cpu, SLICE_END))


def _event(track: int, kind: int, name: str | None = None, category: str = "core") -> bytes:
    known = text(23, name) + text(22, category) if name is not None else b""
    return message(11, integer(9, kind) + integer(11, track) + known)


def _samples(samples: ExportSamples, rows: SampleBatch, names: _Names) -> Iterator[bytes]:
    order = np.argsort(rows.time_us, kind="stable")
    stacks = samples.numbers(rows.stack)
    for at in order.tolist():
        task = samples.tasks[int(rows.task[at])]
        stack = int(stacks[at])
        new = names.of(stack)
        body = integer(1, max(int(rows.cpu[at]), 0)) + integer(2, task.pid or 0) + integer(3, task.tid or 0)
        body += integer(5, names.mode(stack)) + integer(4, stack + 1)
        yield _packet(int(rows.time_us[at]), (message(12, new) if new else b"") + message(66, body))


class _Names:
    """The tables of the sequence: each stack, frame and name is written before the first sample that refers to it."""

    def __init__(self, samples: ExportSamples) -> None:
        self._samples = samples
        self._frames: Interner[int] = Interner([-1])
        self._functions, self._mappings = Interner([""]), Interner([""])
        self._written = [1, 1, 1]
        self._known: set[int] = set()

    def mode(self, stack: int) -> int:
        """Whether its leaf is the kernel's."""
        positions = self._samples.functions(stack)
        leaf = positions[-1] if len(positions) else None
        is_kernel = leaf is not None and self._samples.stacks.functions[leaf].kind in KERNEL_KINDS
        return MODE_KERNEL if is_kernel else MODE_USER

    def of(self, stack: int) -> bytes:
        """InternedData for what is new in a stack; nothing for a stack that is known."""
        if stack in self._known:
            return b""
        self._known.add(stack)
        frames = [self._frames.position(position) for position in self._samples.functions(stack)]
        made: list[bytes] = []
        for number, position in enumerate(list(self._frames)[self._written[0] :], self._written[0]):
            function = self._samples.stacks.functions[position]
            named, mapping = self._functions.position(function.name), self._mappings.position(module_of(function))
            made.append(message(6, integer(1, number) + integer(2, named) + integer(3, mapping)))
        self._written[0] = len(self._frames)
        for number, title in enumerate(list(self._functions)[self._written[1] :], self._written[1]):
            made.append(message(5, integer(1, number) + text(2, title)))
        for number, path in enumerate(list(self._mappings)[self._written[2] :], self._written[2]):
            made.append(message(17, integer(1, number) + text(2, path)))
            made.append(message(19, integer(1, number) + integer(7, number)))
        self._written[1:] = [len(self._functions), len(self._mappings)]
        callstack = integer(1, stack + 1) + b"".join(integer(2, frame) for frame in frames)
        return b"".join([*made, message(7, callstack)])
