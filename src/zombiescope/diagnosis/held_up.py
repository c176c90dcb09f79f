"""Whether the threads of some processes waited for cores that others had: before a span and during it, by samples.

A thread that was on one of those cores and ran much less there than before, while tasks waited in its run queue, was
held up. Whoever was sampled on other cores was not. Of a process that was not sampled at all, before or during, nothing
is known: a thread that waits is not in the samples, and neither is one that had nothing to do.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

import numpy as np

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.sample_grid import SampleGrid
from zombiescope.diagnosis.thresholds import (
    EARLIER_LEAST_US,
    STARVED_LEAST_SAMPLES,
    STARVED_MOSTLY_SHARE,
    STARVED_PAST_US,
    STARVED_RAN_RATIO,
    STARVED_WAITED_RATIO,
)

State = Literal["waited", "elsewhere", "unknown"]


class Witness(NamedTuple):
    state: State
    threads: int = 0
    """That belong to those cores."""
    ran_before: float = 0.0
    ran: float = 0.0
    """Cores' worth of CPU that they had."""
    waited_s: float | None = None
    """By tasks of those cores, summed up; None where the kernel does not count it."""


def look(facts: Facts, pids: Collection[int], cores: Collection[int], from_us: int, to_us: int) -> Witness:
    """Of processes and all that descend from them."""
    during, seconds = facts.samples_between(from_us, to_us), max((to_us - from_us) / 1e6, 1e-6)
    before, seconds_before = _before(facts, from_us)
    now = _threads(during, pids, cores)
    earlier = {} if before is None else _threads(before, pids, cores)
    if not now and not earlier:
        return Witness("unknown")
    mine = [one for one in now.keys() | earlier.keys() if _belongs(now.get(one), earlier.get(one))]
    ran = sum(now[one][0] for one in mine if one in now) / during.hz / seconds
    ran_before = sum(earlier[one][0] for one in mine if one in earlier) / during.hz / max(seconds_before, 1e-6)
    waited_s = _waited_s(facts, cores, from_us, to_us)
    state: State = (
        "waited" if mine and _was_held_up(ran, ran_before, before is not None, waited_s, seconds) else "elsewhere"
    )
    return Witness(state, len(mine), ran_before, ran, waited_s)


def _was_held_up(ran: float, ran_before: float, has_past: bool, waited_s: float | None, seconds: float) -> bool:
    if waited_s is not None and waited_s < STARVED_WAITED_RATIO * seconds:
        return False
    if has_past and ran_before:
        return ran <= STARVED_RAN_RATIO * ran_before
    return waited_s is not None


def _belongs(now: tuple[int, int] | None, earlier: tuple[int, int] | None) -> bool:
    """Where it was in the span counts; where it was before only if it hardly ran."""
    total, there = now or (0, 0)
    if total < STARVED_LEAST_SAMPLES:
        total, there = earlier or (0, 0)
    return total >= STARVED_LEAST_SAMPLES and there >= STARVED_MOSTLY_SHARE * total


def _threads(grid: SampleGrid, pids: Collection[int], cores: Collection[int]) -> dict[int, tuple[int, int]]:
    """By task: how many samples it has, and how many on those cores."""
    if not len(grid):
        return {}
    mine = grid.below(frozenset(pids))
    tasks, place = np.unique(grid.task[mine], return_inverse=True)
    total = np.bincount(place, minlength=len(tasks))
    there = np.bincount(place[np.isin(grid.cpu[mine], sorted(cores))], minlength=len(tasks))
    return {task: (all_, here) for task, all_, here in zip(tasks.tolist(), total.tolist(), there.tolist(), strict=True)}


def _before(facts: Facts, from_us: int) -> tuple[SampleGrid | None, float]:
    start_us = max(from_us - STARVED_PAST_US, facts.start_us)
    if from_us - start_us >= EARLIER_LEAST_US:
        return facts.samples_between(start_us, from_us), (from_us - start_us) / 1e6
    past = facts.before(from_us, STARVED_PAST_US // 3)
    return (None, 0.0) if past is None else (past.samples, past.seconds)


def _waited_s(facts: Facts, cores: Collection[int], from_us: int, to_us: int) -> float | None:
    grid = facts.cores
    rows = [] if grid is None else [row for cpu in cores if (row := grid.row(cpu)) is not None]
    if grid is None or not rows:
        return None
    first = max(0, grid.second(from_us))
    part = grid.counts["wait_us"][rows, first : max(first + 1, grid.second(to_us - 1) + 1)]
    return None if not part.size or np.isnan(part).all() else float(np.nansum(part)) / 1e6
