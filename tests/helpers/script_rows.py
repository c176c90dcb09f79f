# ruff: noqa: E501 - lines that perf prints are kept whole
"""perf script text as the reader understands it: rows with names in place of numbers."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, NamedTuple

from zombiescope._native import PerfScriptText
from zombiescope.imports.perf_script import place

CHAIN = "\tffffffff821e81e7 clear_page_erms+0x7 ([kernel.kallsyms])\n\t          16e0ba __memset+0x7a (/usr/lib/libc.so.6)\n"


class Sample(NamedTuple):
    comm: str | None
    pid: int | None
    tid: int | None
    cpu: int
    time_us: int
    period: int | None
    event: str
    stack: tuple[str, ...]
    """Outermost first."""


class Parsed(NamedTuple):
    samples: list[Sample]
    frames: dict[str, tuple[str, str]]
    """Name -> (module, kind)."""
    text: Any
    idle: int


def parse(text: str | bytes, piece: int = 1 << 20, limit: int = 1_000_000, cut: bool = False) -> Parsed:
    data = text if isinstance(text, bytes) else text.encode()
    reader = PerfScriptText(place, limit)
    samples: list[Sample] = []
    kinds: dict[str, tuple[str, str]] = {}
    idle = 0

    def take() -> None:
        nonlocal idle
        times, cpus, tasks, stacks, periods, events, lengths, flat, frames, who, names, idlers = reader.take()
        idle += idlers
        ends = [*accumulate(lengths)]
        kinds.update({name: (module, kind) for name, module, kind in frames})
        for row in range(len(times)):
            at = stacks[row]
            run = flat[ends[at] - lengths[at] : ends[at]] if at >= 0 else ()
            pid, tid, comm = who[tasks[row]] if tasks[row] >= 0 else (None, None, None)
            period = periods[row] if periods is not None else None
            name = names[events[row] if events is not None else 0]
            stack = tuple(frames[number][0] for number in run)
            samples.append(Sample(comm, pid, tid, cpus[row], times[row], period, name, stack))

    for start in range(0, len(data), piece):
        part = data[start : start + piece]
        at = reader.feed(part)
        while at < len(part):
            take()
            at = reader.feed(part, at)
    reader.finish(cut)
    take()
    assert reader.event_lines == len(samples) + sum(
        count for why, count in reader.skipped.items() if "lost" not in why and "stacks without" not in why
    )
    return Parsed(samples, kinds, reader, idle)
