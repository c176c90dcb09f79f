"""Tasks that share one core and are never seen on another, although there is room: something keeps them there.

The scheduler moves whoever waits to a core that idles, within milliseconds. Three programs that each have a part of one
core for seconds, and not one sample of which is from elsewhere, are kept by an affinity mask or a cpuset. Kernel
threads belong to their core, so they do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zombiescope.diagnosis.incident import Actor
from zombiescope.diagnosis.sample_grid import KTHREADD, MOSTLY, SampleGrid
from zombiescope.recording.columns import Mask

LEAST_TASKS = 3
LEAST_SHARE = 0.05
"""Of the core, of each: who runs for a moment now and then may well have been there by chance."""


@dataclass(frozen=True, slots=True)
class Crowd:
    cpu: int
    tasks: int
    share: float
    """Of the samples of that core."""
    samples: Mask


def crowd_on(grid: SampleGrid, cpu: int, from_us: int, to_us: int) -> Crowd | None:
    """None where fewer than three tasks are kept there, or where they have little of it."""
    span = grid.where(from_us, to_us)
    there = span & (grid.cpu == cpu)
    tasks, counts = np.unique(grid.task[there], return_counts=True)
    total = int(counts.sum())
    often = tasks[counts >= LEAST_SHARE * max(total, 1)]
    elsewhere = np.unique(grid.task[span & (grid.cpu != cpu)])
    kept = [number for number in np.setdiff1d(often, elsewhere).tolist() if _is_a_program(grid, number)]
    mine = there & np.isin(grid.task, kept)
    share = np.count_nonzero(mine) / max(total, 1)
    return Crowd(cpu, len(kept), share, mine) if len(kept) >= LEAST_TASKS and share >= MOSTLY else None


def who_keeps_them(grid: SampleGrid, crowd: Crowd, seconds: float) -> Actor | None:
    """The process that started most of them, which is where they have their affinity from; else the busiest."""
    cores = round(int(np.count_nonzero(crowd.samples)) / grid.hz / max(seconds, 1e-6), 3)
    starter = grid.starter(crowd.samples)
    if starter is not None and starter.task is not None and starter.started_most:
        return starter.task.actor(cores)
    busiest = grid.hottest_task(crowd.samples)
    return None if busiest is None else busiest[0].actor(cores)


def _is_a_program(grid: SampleGrid, number: int) -> bool:
    task = grid.task_of(number)
    return bool(task.pid) and task.ppid != KTHREADD and task.pid != KTHREADD
