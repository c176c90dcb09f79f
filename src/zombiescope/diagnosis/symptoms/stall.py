"""A core that stood still for 100 ms or more: one task held it in the kernel, or took no interrupt there.

Seen in the stacks: sample after sample of one task on one core, all in the kernel. That alone is any busy program; it
is a stall when somebody waited meanwhile: ksoftirqd (its run delay) or the run queue of that core. Where waiting was
not measured (imported profiles), one that is long, or that comes again and again, is reported. All stalls of a core by
one task in a window are one symptom.

No sample at all for so long, and neither was the core stolen nor the sample lost, is code that ran with interrupts off
(time_holes.py); no clock can look inside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from zombiescope.diagnosis.core_grid import CoreGrid
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.sample_grid import SampleGrid
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import (
    STALL_LONG_UNSEEN_US,
    STALL_MOST_US,
    STALL_OFTEN_UNSEEN,
    STALL_US,
    STALL_WAITED_US,
)
from zombiescope.diagnosis.time_holes import Hole, holes


class _Stall(NamedTuple):
    from_us: int
    to_us: int
    waited_us: int | None

    @property
    def length_us(self) -> int:
        return self.to_us - self.from_us


def find(facts: Facts) -> Iterator[Symptom]:
    yield from _held(facts)
    if facts.cores is not None:
        is_known = _counts_steal(facts, facts.cores)
        yield from (_interrupts_off(hole, steal_is_known=is_known) for hole in holes(facts, facts.cores))


def _counts_steal(facts: Facts, cores: CoreGrid) -> bool:
    """It counted some, in the window or from boot to the recorder's start; or nothing is below this machine."""
    below, counted = facts.node.get("hypervisor"), facts.node.get("steal_counted")
    virtual = below.get("virtual") if isinstance(below, dict) else None
    if virtual is False or counted is None:  # bare metal; or a recording that does not know
        return True
    return bool(counted) or bool(np.nansum(cores.ratios["steal"]) > 0)


def _held(facts: Facts) -> Iterator[Symptom]:
    found: dict[tuple[int, int], list[_Stall]] = defaultdict(list)
    for cpu, task, from_us, to_us in _runs(facts.samples):
        if STALL_US <= to_us - from_us < STALL_MOST_US and facts.samples.task_of(task).tid:
            found[cpu, task].append(_Stall(from_us, to_us, _waited(facts, cpu, from_us, to_us)))
    for (cpu, task), stalls in sorted(found.items(), key=lambda item: item[1][0].from_us):
        noticed = _noticeable(stalls)
        if noticed:
            yield _symptom(facts.samples, cpu, task, noticed)


def _runs(grid: SampleGrid) -> Iterator[tuple[int, int, int, int]]:
    """(core, task, from, to) of each unbroken run of kernel samples of one task on one core."""
    if not len(grid):
        return
    order = np.lexsort((grid.time_us, grid.cpu))
    time, cpu, task, kernel = grid.time_us[order], grid.cpu[order], grid.task[order], grid.in_kernel[order]
    period_us = 1e6 / grid.hz
    goes_on = (cpu[1:] == cpu[:-1]) & (task[1:] == task[:-1]) & kernel[1:] & kernel[:-1]
    goes_on &= time[1:] - time[:-1] < 2.5 * period_us
    breaks = np.flatnonzero(~goes_on)
    firsts, lasts = np.concatenate([[0], breaks + 1]), np.concatenate([breaks, [len(time) - 1]])
    long = np.flatnonzero((time[lasts] - time[firsts] + period_us >= STALL_US) & kernel[firsts])
    for first, last in zip(firsts[long].tolist(), lasts[long].tolist(), strict=True):
        yield int(cpu[first]), int(task[first]), int(time[first]), int(time[last] + period_us)


def _noticeable(stalls: list[_Stall]) -> list[_Stall]:
    noticed = [stall for stall in stalls if stall.waited_us is not None and stall.waited_us >= STALL_WAITED_US]
    unseen = [stall for stall in stalls if stall.waited_us is None]
    if len(unseen) >= STALL_OFTEN_UNSEEN or any(stall.length_us >= STALL_LONG_UNSEEN_US for stall in unseen):
        noticed += unseen
    return sorted(noticed)


def _symptom(grid: SampleGrid, cpu: int, task: int, stalls: list[_Stall]) -> Symptom:
    who = grid.task_of(task)
    longest = max(stalls, key=lambda stall: stall.length_us)
    waited = [stall.waited_us for stall in stalls if stall.waited_us is not None]
    times = "once" if len(stalls) == 1 else f"{len(stalls)} times"
    text = f"{who.comm} held core {cpu} in the kernel {times}, for up to {longest.length_us / 1000:.0f} ms"
    if waited:
        text += f" while others waited up to {max(waited) / 1000:.0f} ms for it"
    return Symptom(
        DETECTOR,
        stalls[0].from_us,
        stalls[-1].to_us,
        text,
        "info",
        cpu if cpu >= 0 else None,
        f"tid {who.tid}",
        {
            "pid": who.pid,
            "tid": who.tid,
            "comm": who.comm,
            "count": len(stalls),
            "longest_us": longest.length_us,
            "waited_us": max(waited, default=None),
        },
        finding="core-held",
    )


def _interrupts_off(hole: Hole, *, steal_is_known: bool) -> Symptom:
    """Without a steal clock (Hyper-V and several clouds have none) the hypervisor may have taken the core as well."""
    why = "code ran with interrupts off"
    if not steal_is_known:
        why += ", or the hypervisor took the core: this machine counts no steal"
    return Symptom(
        DETECTOR,
        hole.from_us,
        hole.to_us,
        f"core {hole.cpu} took no interrupt for {hole.gap_us / 1000:.0f} ms: {why}",
        "warning",
        hole.cpu,
        facts={
            "gap_us": hole.gap_us,
            "expected_samples": hole.expected_samples,
            "samples": hole.samples,
            "interrupts_off": True,
        },
        finding="core-stalled",
    )


def _waited(facts: Facts, cpu: int, from_us: int, to_us: int) -> int | None:
    """The longest that ksoftirqd or the run queue of a core waited in the seconds of a span."""
    cores = facts.cores
    row = cores.row(cpu) if cores is not None else None
    if cores is None or row is None:
        return None
    first, last = (max(0, min(cores.seconds - 1, cores.second(at))) for at in (from_us, to_us))
    known = [
        float(np.nanmax(part))
        for name in ("ksoftirqd_delay_us", "wait_us")
        if not np.isnan(part := cores.counts[name][row, first : last + 1]).all()
    ]
    return int(max(known)) if known else None


DETECTOR = Detector(
    kind="stall",
    title="a core took no interrupts",
    reported_when="one task held a core in the kernel for 100 ms to 1 s while others waited; or one core, not all at "
    "once, took no interrupt for 100 ms",
    find=find,
    source="samples",
    role="victim",
    begins="summed",
    joins="echo",
    bounds_case=True,
    names_hog=True,
    core_rank=2,
    core_is_held=True,
    victim="tasks on core {cpu}",
)
