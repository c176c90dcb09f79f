"""The samples of a window, ready to be asked who held how much of the kernel, when and in which functions.

Everything is arrays over samples; `in_kernel` and the groups are looked up once per stack and per task. A group is what
samples are added up by: a thread, a comm, a unit or cgroup, or the children of one parent. Storms are made of tasks
that live for a millisecond, so a rule about single tasks would see nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from zombiescope.diagnosis.incident import Actor
from zombiescope.profile.selection import Selection
from zombiescope.profile.stacks import Stacks
from zombiescope.recording import columns
from zombiescope.recording.columns import Ints, Mask
from zombiescope.recording.reader import Recording
from zombiescope.recording.stacks import kernel_path

BIN_US = 250_000
"""A hog is looked for in any second that starts at a quarter of a second."""


@dataclass(frozen=True, slots=True)
class Task:
    pid: int | None
    tid: int | None
    comm: str | None
    ppid: int | None
    policy: int | None
    rt_priority: int | None
    cgroup: str | None
    unit: str | None
    container: str | None
    pod: str | None

    def actor(self, cpu_ratio: float | None = None) -> Actor:
        return Actor(self.comm, self.pid, self.unit, self.cgroup, self.container, self.pod, cpu_ratio)


NOBODY = Task(None, None, None, None, None, None, None, None, None, None)
_COLUMNS = ("pid", "tid", "comm", "ppid", "policy", "rt_priority", "cgroup", "unit", "container", "pod")


DEFAULT_HZ = 99.0
FEW = 100


def _measured_hz(time_us: Ints, cpu: Ints) -> float:
    """How often a busy core was sampled: perf takes 4,000 a second unless told, fewer where the kernel throttles it.

    Between two samples of one core lies a period, or more where the core was idle meanwhile; so it is the short ones
    that tell.
    """
    order = np.lexsort((time_us, cpu))
    between = np.diff(time_us[order])[np.diff(cpu[order]) == 0]
    between = between[between > 0]
    return 1e6 / float(np.percentile(between, 25)) if len(between) >= FEW else DEFAULT_HZ


class SampleGrid:
    """All samples of [start_us, end_us) that are not idle."""

    def __init__(self, recording: Recording, start_us: int, end_us: int, hz: float | None) -> None:
        self.start_us, self.end_us = start_us, end_us
        selection = Selection(recording, start_us, end_us)
        parts = list(selection.columns("time", "cpu", "task", "stack"))
        empty = [np.zeros(0, np.int64)] * 4
        self.time_us, self.cpu, self.task, stack = (
            np.concatenate(column) for column in (zip(*parts, strict=True) if parts else ([each] for each in empty))
        )
        self.hz = hz or _measured_hz(self.time_us, self.cpu)
        self.stacks: Stacks = selection.stacks
        self.stack: Ints = self.stacks.rows_of(stack)
        self._tasks = _read_tasks(recording, start_us, end_us)

    def __len__(self) -> int:
        return len(self.time_us)

    @cached_property
    def in_kernel(self) -> Mask:
        kernel = self.stacks.in_kernel()
        kernel[-1] = False
        return np.asarray(kernel[self.stack], bool)

    def task_of(self, number: int) -> Task:
        return self._tasks.get(number, NOBODY)

    # --- groups ------------------------------------------------------------------------------------------------------

    def groups(self, key: Callable[[Task], str | None]) -> tuple[Ints, list[str]]:
        """For each sample the number of its group, -1 without one; and the names of the groups."""
        names: dict[str, int] = {}
        used = np.unique(self.task)
        number = np.full(int(used.max(initial=-1)) + 2, -1, np.int64)
        for task in used.tolist():
            name = key(self.task_of(task)) if task >= 0 else None
            number[task] = -1 if name is None else names.setdefault(name, len(names))
        return number[self.task], list(names)

    def bins(self) -> int:
        return max(1, -(-(self.end_us - self.start_us) // BIN_US))

    def per_bin(self, group: Ints, groups: int, chosen: Mask) -> npt.NDArray[np.int64]:
        """Samples [group, quarter of a second] among the chosen ones."""
        use = chosen & (group >= 0)
        place = np.clip((self.time_us[use] - self.start_us) // BIN_US, 0, self.bins() - 1)
        counted = np.bincount(group[use] * self.bins() + place, minlength=groups * self.bins())
        return counted.reshape(groups, self.bins())

    # --- one span ----------------------------------------------------------------------------------------------------

    def where(self, from_us: int, to_us: int, cpu: int | None = None) -> Mask:
        chosen = (self.time_us >= from_us) & (self.time_us < to_us)
        return chosen if cpu is None else chosen & (self.cpu == cpu)

    def counts(self, chosen: Mask) -> Ints:
        """How often each stack occurs among the chosen samples."""
        return np.bincount(self.stack[chosen], minlength=self.stacks.count)

    def hottest_task(self, chosen: Mask) -> tuple[Task, int] | None:
        """The task with most of the chosen samples, and how many."""
        tasks, counts = np.unique(self.task[chosen], return_counts=True)
        if not len(tasks):
            return None
        best = int(np.argmax(counts))
        return self.task_of(int(tasks[best])), int(counts[best])

    def hottest_group(self, chosen: Mask, key: Callable[[Task], str | None]) -> tuple[Task, int] | None:
        """The task with most of the chosen samples in the group with most of them, and the group's count."""
        group, names = self.groups(key)
        use = chosen & (group >= 0)
        if not names or not use.any():
            return None
        counted = np.bincount(group[use], minlength=len(names))
        best = int(np.argmax(counted))
        hottest = self.hottest_task(use & (group == best))
        return None if hottest is None else (hottest[0], int(counted[best]))

    def task_with_pid(self, pid: int) -> Task | None:
        """The one with most samples: a process that was given another name is another task."""
        numbers = [number for number, task in self._tasks.items() if task.pid == pid]
        counted = {number: int(np.count_nonzero(self.task == number)) for number in numbers}
        return self._tasks[max(numbers, key=lambda number: counted[number])] if numbers else None


def _read_tasks(recording: Recording, start_us: int, end_us: int) -> dict[int, Task]:
    rows = recording.table("tasks", start_us, end_us, ("task", *_COLUMNS))
    return {row["task"]: Task(*(row[name] for name in _COLUMNS)) for row in columns.records(rows)}


def kernel_functions(grid: SampleGrid, chosen: Mask) -> KernelProfile:
    """What the kernel did in the chosen samples."""
    counts = grid.counts(chosen & grid.in_kernel)
    paths: dict[tuple[str, ...], int] = {}
    for row in np.flatnonzero(counts).tolist():
        path = kernel_path(grid.stacks.of(row))  # type: ignore[arg-type]  # Function has name and kind as NamedFrame has
        paths[path] = paths.get(path, 0) + int(counts[row])
    return KernelProfile(paths, int(np.count_nonzero(chosen)))


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """Kernel paths, outermost first, without leaves that only look hot; and how many samples they are out of."""

    paths: dict[tuple[str, ...], int]
    samples: int

    @property
    def kernel_samples(self) -> int:
        return sum(self.paths.values())

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for path in self.paths for name in path)

    def total(self, *names: str) -> int:
        """Samples in which one of the functions is on the kernel's stack."""
        wanted = frozenset(names)
        return sum(count for path, count in self.paths.items() if not wanted.isdisjoint(path))

    def own(self, *names: str) -> int:
        """Samples in which one of the functions is the innermost."""
        wanted = frozenset(names)
        return sum(count for path, count in self.paths.items() if path and path[-1] in wanted)

    def under(self, outer: frozenset[str], inner: frozenset[str]) -> int:
        """Samples in which one of `inner` was called, directly or not, by one of `outer`."""
        return sum(count for path, count in self.paths.items() if _calls(path, outer, inner))

    def share(self, count: int) -> float:
        """Of all samples taken in the kernel."""
        return count / self.kernel_samples if self.kernel_samples else 0.0


def _calls(path: tuple[str, ...], outer: frozenset[str], inner: frozenset[str]) -> bool:
    for at, name in enumerate(path):
        if name in outer:
            return not inner or not inner.isdisjoint(path[at:])
    return False
