"""The processes that a trainer started to feed its GPU, and whether they had all the CPU that a process can use.

A worker of a DataLoader that runs all the time is the limit of the job; it waits for nobody, so no core is short of
anything. Only processes count that were there before as well: an evaluation has workers of its own.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.sample_grid import SampleGrid
from zombiescope.diagnosis.thresholds import INPUT_LEAST_WORKERS, INPUT_WORKER_BUSY_RATIO, INPUT_WORKERS_BUSY_SHARE


class Workers(NamedTuple):
    many: int
    busy: int
    ratio: float
    """The mean of their parts of a core."""

    @property
    def are_saturated(self) -> bool:
        return self.many >= INPUT_LEAST_WORKERS and self.busy >= INPUT_WORKERS_BUSY_SHARE * self.many


def workers(facts: Facts, pids: Collection[int], from_us: int, to_us: int, before_us: int | None = None) -> Workers:
    """Of the processes on a GPU, in a span; only those that ran in the time before it, too, where that is given."""
    used = _used(facts.samples_between(from_us, to_us), pids, (to_us - from_us) / 1e6)
    if before_us is not None:
        there = _used(facts.samples_between(before_us, from_us), pids, (from_us - before_us) / 1e6)
        used = {pid: ratio for pid, ratio in used.items() if pid in there}
    ratios = [min(ratio, 1.0) for ratio in used.values()]
    return Workers(
        len(ratios), sum(one >= INPUT_WORKER_BUSY_RATIO for one in ratios), sum(ratios) / max(len(ratios), 1)
    )


def _used(grid: SampleGrid, pids: Collection[int], seconds: float) -> dict[int, float]:
    """Cores' worth of CPU of each process below these."""
    if not len(grid) or seconds <= 0:
        return {}
    tasks, counts = np.unique(grid.task[grid.below(frozenset(pids))], return_counts=True)
    used: dict[int, float] = {}
    for number, count in zip(tasks.tolist(), counts.tolist(), strict=True):
        pid = grid.task_of(number).pid
        if pid is not None and pid not in pids:
            used[pid] = used.get(pid, 0.0) + count / grid.hz / seconds
    return used
