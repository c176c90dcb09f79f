"""Tasks that share one core and are never seen on another, although there is room: something keeps them there.

The scheduler moves whoever waits to a core that idles, within milliseconds. Three programs that each have a part of one
core for seconds, and not one sample of which is from elsewhere, are kept by an affinity mask or a cpuset. They must be
there together: of a build the next compiler starts where the last one ended, and each lives and dies on one core.
Kernel threads belong to their core, so they do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zombiescope.diagnosis.incident import Actor
from zombiescope.diagnosis.sample_grid import KTHREADD, SampleGrid
from zombiescope.diagnosis.thresholds import CROWD_LEAST_TASKS, CROWD_TASK_LEAST_SHARE, MOSTLY_SHARE
from zombiescope.store.columns import Mask


@dataclass(frozen=True, slots=True)
class Crowd:
    cpu: int
    tasks: int
    share: float
    """Of the samples of that core."""
    samples: Mask


def crowd_on(grid: SampleGrid, cpu: int, from_us: int, to_us: int) -> Crowd | None:
    """None where fewer than three tasks are kept there, where they have little of it, or come one after the other."""
    span = grid.where(from_us, to_us)
    there = span & (grid.cpu == cpu)
    tasks, counts = np.unique(grid.task[there], return_counts=True)
    total = int(counts.sum())
    often = tasks[counts >= CROWD_TASK_LEAST_SHARE * max(total, 1)]
    elsewhere = np.unique(grid.task[span & (grid.cpu != cpu)])
    kept = [number for number in np.setdiff1d(often, elsewhere).tolist() if _is_a_program(grid, number)]
    mine = there & np.isin(grid.task, kept)
    share = np.count_nonzero(mine) / max(total, 1)
    if (
        len(kept) < CROWD_LEAST_TASKS
        or share < MOSTLY_SHARE
        or _together_us(grid, mine, kept) < MOSTLY_SHARE * (to_us - from_us)
    ):
        return None
    return Crowd(cpu, len(kept), share, mine)


def _together_us(grid: SampleGrid, mine: Mask, tasks: Sequence[int]) -> int:
    """How long three of them were there, each from its first sample to its last."""
    spans = [grid.time_us[mine & (grid.task == number)][[0, -1]] for number in tasks]
    begins, ends = np.sort([span[0] for span in spans]), np.sort([span[1] for span in spans])
    moments = np.sort(np.concatenate([begins, ends]))
    there = np.searchsorted(begins, moments[:-1], "right") - np.searchsorted(ends, moments[:-1], "right")
    return int(np.diff(moments)[there >= CROWD_LEAST_TASKS].sum())


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
