"""What samples are added up by to find who holds the kernel: a thread, a program, the kernel's own threads of one kind,
a unit or cgroup, the children of one parent, and everybody who has something to do with it.

Storms are made of tasks that live for a millisecond, and work that one task starts is often done by threads of the
kernel, one on each core; so no single level shows them all.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from zombiescope.diagnosis.ancestry import KTHREADD
from zombiescope.diagnosis.sample_grid import SampleGrid
from zombiescope.diagnosis.sample_index import SampledTask
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.store.columns import Mask

Key = Callable[[SampledTask], str | None]

THREAD, COMM, KERNEL_THREADS, OWNER, PARENT = "thread", "comm", "kernel threads", "owner", "parent"
EVERYBODY = "everybody"
INTERRUPTS = "interrupts of idle cores"
_PLACE = re.compile(r"[/:].*|\d+$")


def kernel_threads(task: SampledTask) -> str | None:
    """The kind of a thread of the kernel: kworker/3:1 and kworker/u8:0 are kworkers, kswapd1 is a kswapd."""
    if not task.tid or task.ppid != KTHREADD or not task.comm:
        return None
    return _PLACE.sub("", task.comm, count=1) or task.comm


def kind(task: SampledTask) -> str:
    """Every task has one: the kernel's threads together, programs by their names."""
    return kernel_threads(task) or (INTERRUPTS if not task.tid else task.comm or f"tid {task.tid}")


LEVELS: tuple[tuple[str, Key], ...] = (
    (THREAD, lambda task: None if not task.tid else f"tid {task.tid}"),
    (COMM, lambda task: None if not task.tid else task.comm),
    (KERNEL_THREADS, kernel_threads),
    (OWNER, lambda task: task.unit or task.container or (task.cgroup if task.cgroup != "/" else None)),
    (PARENT, lambda task: None if not task.ppid or task.ppid <= KTHREADD else f"children of {task.ppid}"),
)
"""The smallest first."""

KEYS: dict[str, Key] = dict(LEVELS)


def members(grid: SampleGrid, symptom: Symptom) -> Mask:
    """Samples of the tasks that a symptom names."""
    mine: Mask = member_tasks(grid, symptom)[grid.task]
    return mine


def member_tasks(grid: SampleGrid, symptom: Symptom) -> Mask:
    """For each task whether a symptom names it; and for none, at the end."""
    if symptom.group == EVERYBODY:
        number, names = grid.tasks_by(kind)
        kinds = [names[name] for name in symptom.facts.get("kinds", ()) if name in names]
        return np.asarray(np.isin(number, kinds), bool)
    for _, key in (*LEVELS, ("any", _owner)):
        number, names = grid.tasks_by(key)
        if symptom.group in names:
            mine: Mask = number == names[symptom.group]
            return mine
    return np.zeros_like(number, bool)


def _owner(task: SampledTask) -> str | None:
    return task.unit or task.container or task.comm
