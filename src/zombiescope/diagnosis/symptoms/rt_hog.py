"""A real-time task that kept a core for itself: whatever else was to run there waited.

Told by the scheduling policy of the task (SCHED_FIFO 1, SCHED_RR 2, SCHED_DEADLINE 6), not by kernel frames: it may
never enter the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.sample_grid import BIN_US, SECOND_BINS, moving_sum
from zombiescope.diagnosis.sample_index import SampledTask
from zombiescope.diagnosis.spans import runs
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.store.thresholds import REAL_TIME_RATIO

REAL_TIME = {1: "SCHED_FIFO", 2: "SCHED_RR", 6: "SCHED_DEADLINE"}


def find(facts: Facts) -> Iterator[Symptom]:
    grid = facts.samples
    group, names = grid.groups(_real_time)
    if not names:
        return
    counted = grid.per_bin(group, len(names), np.ones(len(grid), bool))
    in_a_second = moving_sum(counted, SECOND_BINS)
    for number, name in enumerate(names):
        for first, last in runs(in_a_second[number] >= REAL_TIME_RATIO * grid.hz, bridge=SECOND_BINS):
            from_us, to_us = grid.start_us + first * BIN_US, grid.start_us + (last + SECOND_BINS - 1) * BIN_US
            chosen = grid.where(from_us, to_us) & (group == number)
            hottest = grid.hottest_task(chosen)
            if hottest is None:
                continue
            task = hottest[0]
            ratio = int(np.count_nonzero(chosen)) / grid.hz / ((to_us - from_us) / 1e6)
            cpus = np.unique(grid.cpu[chosen])
            yield Symptom(
                DETECTOR,
                from_us,
                to_us,
                f"{task.comm} ran at real-time priority ({REAL_TIME[task.policy or 1]} {task.rt_priority}) for "
                f"{ratio:.2f} of a CPU; ordinary tasks on its core waited",
                "warning",
                int(cpus[0]) if len(cpus) == 1 else None,
                name,
                {
                    "policy": task.policy,
                    "rt_priority": task.rt_priority,
                    "ratio": ratio,
                    "pid": task.pid,
                    "comm": task.comm,
                },
                finding="real-time-hog",
            )


def _real_time(task: SampledTask) -> str | None:
    kernel_thread = task.ppid == 2 or (task.pid is not None and task.pid <= 2)
    return f"tid {task.tid}" if task.policy in REAL_TIME and task.tid and not kernel_thread else None


DETECTOR = Detector(
    kind="rt_hog",
    title="a real-time task held a core",
    reported_when="a task with a real-time policy used 0.85 of a CPU",
    find=find,
    source="samples",
    role="hog",
    begins="onset",
    weight=3,
    bounds_case=True,
    names_hog=True,
)
