"""The samples of a window, ready to be asked who held how much of the kernel, when and in which functions.

Everything is arrays over samples; `in_kernel` and the groups are looked up once per stack and per task. A group is what
samples are added up by: a thread, a comm, a unit or cgroup, or the children of one parent. Storms are made of tasks
that live for a millisecond, so a rule about single tasks would see nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from zombiescope.diagnosis.incident import Actor
from zombiescope.profile.selection import Selection
from zombiescope.profile.stacks import Stacks
from zombiescope.recording import columns
from zombiescope.recording.columns import Ints, Mask
from zombiescope.recording.reader import Recording
from zombiescope.recording.stacks import KERNEL_KINDS, kernel_path

KTHREADD = 2
MOSTLY = 0.6
BIN_US = 250_000
"""A hog is looked for in any second that starts at a quarter of a second."""


@dataclass(frozen=True, slots=True)
class SampledTask:
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

    def actor(self, cores: float | None = None) -> Actor:
        return Actor(self.comm, self.pid, self.unit, self.cgroup, self.container, self.pod, cores)


NOBODY = SampledTask(None, None, None, None, None, None, None, None, None, None)
_COLUMNS = ("pid", "tid", "comm", "ppid", "policy", "rt_priority", "cgroup", "unit", "container", "pod")


class SampleIndex:
    """What samples point to: stacks, of which only those that occur are kept, and tasks."""

    def __init__(self, stacks: Stacks, tasks: dict[int, SampledTask]) -> None:
        self.stacks = stacks
        self.tasks = tasks
        self._paths: dict[int, tuple[str, ...]] = {}
        self._expanded: dict[frozenset[str], frozenset[str]] = {}
        self._with: dict[frozenset[str], Mask] = {}

    @cached_property
    def in_kernel(self) -> Mask:
        kernel = self.stacks.in_kernel()
        kernel[-1] = False
        return kernel

    def kernel_path(self, row: int) -> tuple[str, ...]:
        path = self._paths.get(row)
        if path is None:
            path = self._paths[row] = kernel_path(self.stacks.of(row))  # type: ignore[arg-type]  # as NamedFrame
        return path

    def expanded(self, names: frozenset[str]) -> frozenset[str]:
        """Names that end in * stand for all that begin so."""
        found = self._expanded.get(names)
        if found is None:
            found = self._expanded[names] = expanded(names, self._by_name)
        return found

    def with_function(self, names: frozenset[str]) -> Mask:
        """Stacks on which one of the kernel's functions is."""
        found = self._with.get(names)
        if found is None:
            found = self._with[names] = np.zeros(self.stacks.count, bool)
            for name in self.expanded(names):
                for number in self._by_name[name]:
                    found[self._rows[self._firsts[number] : self._firsts[number + 1]]] = True
        return found

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        """The kernel's functions: name -> numbers."""
        numbers: dict[str, list[int]] = {}
        for number in np.flatnonzero(np.diff(self._firsts)).tolist():
            numbers.setdefault(self.stacks.functions[number].name, []).append(number)
        return numbers

    @property
    def _rows(self) -> Ints:
        return self._index[0]

    @property
    def _firsts(self) -> Ints:
        return self._index[1]

    @cached_property
    def _index(self) -> tuple[Ints, Ints]:
        """The stacks of each of the kernel's functions, one function after the other, and where each begins."""
        functions = self.stacks.functions
        kernel = np.fromiter((function.kind in KERNEL_KINDS for function in functions), bool, len(functions))
        places = np.flatnonzero(kernel[self.stacks.flat])
        of = self.stacks.flat[places]
        row_at = np.repeat(np.arange(self.stacks.count), self.stacks.ends - self.stacks.starts)[places]
        firsts = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=len(functions)))])
        return row_at[np.argsort(of, kind="stable")], firsts


class SampleGrid:
    """All samples of [start_us, end_us) that are not idle, in the order of time."""

    def __init__(
        self, span: tuple[int, int], hz: float, rows: tuple[Ints, Ints, Ints, Ints], known: SampleIndex
    ) -> None:
        self.start_us, self.end_us = span
        self.hz = hz
        self.time_us, self.cpu, self.task, self.stack = rows
        self.known = known

    def between(self, from_us: int, to_us: int) -> SampleGrid:
        """The samples of a part of the time; bins are counted from where they were."""
        first, last = np.searchsorted(self.time_us, [from_us, to_us])
        rows = tuple(column[first:last] for column in (self.time_us, self.cpu, self.task, self.stack))
        return SampleGrid((self.start_us, self.end_us), self.hz, rows, self.known)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.time_us)

    @property
    def stacks(self) -> Stacks:
        return self.known.stacks

    @cached_property
    def in_kernel(self) -> Mask:
        return np.asarray(self.known.in_kernel[self.stack], bool)

    @cached_property
    def _used(self) -> list[int]:
        """The numbers of the tasks that were sampled."""
        found: list[int] = np.unique(self.task).tolist()
        return found

    def with_function(self, *names: str) -> Mask:
        """Samples on whose stack one of the kernel's functions is."""
        found: Mask = self.known.with_function(frozenset(names))[self.stack]
        return found

    @cached_property
    def comms(self) -> frozenset[str]:
        """The names of the tasks that were sampled."""
        return frozenset(comm for number in self._used if (comm := self.task_of(number).comm))

    def task_of(self, number: int) -> SampledTask:
        return self.known.tasks.get(number, NOBODY)

    # --- groups ------------------------------------------------------------------------------------------------------

    def groups(self, key: Callable[[SampledTask], str | None]) -> tuple[Ints, list[str]]:
        """For each sample the number of its group, -1 without one; and the names of the groups."""
        names: dict[str, int] = {}
        number = np.full(max(self._used, default=-1) + 2, -1, np.int64)
        for task in self._used:
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

    def hottest_task(self, chosen: Mask) -> tuple[SampledTask, int] | None:
        """The task with most of the chosen samples, and how many."""
        tasks, counts = np.unique(self.task[chosen], return_counts=True)
        if not len(tasks):
            return None
        best = int(np.argmax(counts))
        return self.task_of(int(tasks[best])), int(counts[best])

    def hottest_group(self, chosen: Mask, key: Callable[[SampledTask], str | None]) -> tuple[SampledTask, int] | None:
        """The task with most of the chosen samples in the group with most of them, and the group's count."""
        group, names = self.groups(key)
        use = chosen & (group >= 0)
        if not names or not use.any():
            return None
        counted = np.bincount(group[use], minlength=len(names))
        best = int(np.argmax(counted))
        hottest = self.hottest_task(use & (group == best))
        return None if hottest is None else (hottest[0], int(counted[best]))

    def starter(self, chosen: Mask) -> Starter | None:
        """Who started most of what the chosen samples are of; neither pid 1 nor the kernel is anybody."""
        tasks, counts = np.unique(self.task[chosen], return_counts=True)
        by_pid: Counter[int] = Counter()
        threads = 0
        for number, count in zip(tasks.tolist(), counts.tolist(), strict=True):
            task = self.task_of(number)
            is_thread = task.tid != task.pid
            by_pid[(task.pid if is_thread else task.ppid) or 0] += count
            threads += count if is_thread else 0
        known = by_pid.total() - by_pid[0]
        pid, count = max(by_pid.items(), key=lambda each: (each[0] > KTHREADD, each[1]), default=(0, 0))
        if pid <= KTHREADD:
            return None
        return Starter(pid, self.task_with_pid(pid), count, count / known, len(tasks), threads > known / 2)

    def lifetimes_us(self, chosen: Mask) -> Ints:
        """How long each task of the chosen samples was seen, from its first sample to its last."""
        tasks, row = np.unique(self.task[chosen], return_inverse=True)
        first = np.full(len(tasks), np.iinfo(np.int64).max)
        last = np.zeros(len(tasks), np.int64)
        np.minimum.at(first, row, self.time_us[chosen])
        np.maximum.at(last, row, self.time_us[chosen])
        seen: Ints = last - first
        return seen

    def task_with_pid(self, pid: int) -> SampledTask | None:
        """Its main thread rather than another, by the name that it had last: a process that was given another name is
        another task."""
        tasks = self.known.tasks
        mine = [number for number, task in tasks.items() if task.pid == pid]
        best = max(mine, key=lambda number: (tasks[number].tid == pid, number), default=None)
        return None if best is None else tasks[best]


class Starter(NamedTuple):
    """The process that started most of some tasks; a thread is started by its own process."""

    pid: int
    task: SampledTask | None
    """None: it was never sampled itself."""
    samples: int
    """Of what it started."""
    share: float
    """Of the samples of tasks whose starter is known."""
    tasks: int
    """All of them, whoever started them."""
    are_threads: bool

    @property
    def started_most(self) -> bool:
        return self.share >= MOSTLY


def expanded(names: frozenset[str], known: Collection[str]) -> frozenset[str]:
    """Those of the known names that are meant; one that ends in * stands for all that begin so."""
    starts = tuple(name[:-1] for name in names if name.endswith("*"))
    more = (name for name in known if name.startswith(starts)) if starts else ()
    return frozenset({*(name for name in names if name in known), *more})


DEFAULT_HZ = 99.0
FEW = 100


def _measured_hz(time_us: Ints, cpu: Ints) -> float:
    """How often a busy core was sampled: perf takes 4,000 a second by default, fewer where the kernel throttles it.

    Between two samples of one core lies a period, or more where the core was idle meanwhile; so it is the short ones
    that tell.
    """
    order = np.lexsort((time_us, cpu))
    between = np.diff(time_us[order])[np.diff(cpu[order]) == 0]
    between = between[between > 0]
    return 1e6 / float(np.percentile(between, 25)) if len(between) >= FEW else DEFAULT_HZ


def load(recording: Recording, start_us: int, end_us: int, hz: float | None) -> SampleGrid:
    """`hz` None: a profile of others does not say how often it was sampled; then it is measured."""
    selection = Selection(recording, start_us, end_us)
    parts = list(selection.columns("time", "cpu", "task", "stack"))
    empty = [np.zeros(0, np.int64)] * 4
    time_us, cpu, task, stack = (
        np.concatenate(column) for column in (zip(*parts, strict=True) if parts else ([each] for each in empty))
    )
    stack = selection.stacks.rows_of(stack)
    counted = np.bincount(stack, minlength=selection.stacks.count)
    counted[-1] = 0
    used = np.flatnonzero(counted)
    place = np.full(selection.stacks.count, len(used), np.int64)
    place[used] = np.arange(len(used))
    order = np.argsort(time_us, kind="stable")
    rows = (time_us[order], cpu[order], task[order], place[stack[order]])
    tasks = _read_tasks(recording, start_us, end_us)
    hz = hz or _measured_hz(time_us, cpu)
    return SampleGrid((start_us, end_us), hz, rows, SampleIndex(selection.stacks.only(used), tasks))


def _read_tasks(recording: Recording, start_us: int, end_us: int) -> dict[int, SampledTask]:
    rows = recording.table("tasks", start_us, end_us, ("task", *_COLUMNS))
    return {row["task"]: SampledTask(*(row[name] for name in _COLUMNS)) for row in columns.records(rows)}


def kernel_functions(grid: SampleGrid, chosen: Mask) -> KernelProfile:
    """What the kernel did in the chosen samples."""
    counts = grid.counts(chosen & grid.in_kernel)
    return KernelProfile(grid.known, counts, int(np.count_nonzero(chosen)))


@dataclass(frozen=True)
class KernelProfile:
    """How often each stack was seen in the kernel, and how many samples that is out of."""

    known: SampleIndex
    counts: Ints
    samples: int

    @cached_property
    def paths(self) -> dict[tuple[str, ...], int]:
        """Kernel paths, outermost first, without leaves that only look hot."""
        paths: dict[tuple[str, ...], int] = {}
        for row in np.flatnonzero(self.counts).tolist():
            path = self.known.kernel_path(row)
            paths[path] = paths.get(path, 0) + int(self.counts[row])
        return paths

    @cached_property
    def kernel_samples(self) -> int:
        return int(self.counts.sum())

    def total(self, *names: str) -> int:
        """Samples in which one of the functions is on the stack. A name that ends in * stands for all that begin so,
        here and below."""
        return int(self.counts[self.known.with_function(frozenset(names))].sum())

    def totals(self, *names: str) -> dict[str, int]:
        """Function -> samples in which it is on the stack, without those that were not seen."""
        counted = {name: self.total(name) for name in self.known.expanded(frozenset(names))}
        return {name: count for name, count in counted.items() if count}

    def own(self, *names: str) -> int:
        """Samples in which one of the functions is the innermost."""
        wanted = frozenset(names)
        return sum(count for path, count in self.paths.items() if path and path[-1] in wanted)

    def under(self, outer: frozenset[str], inner: frozenset[str]) -> int:
        """Samples in which one of `inner` was called, directly or not, by one of `outer`."""
        callers, called = self.known.expanded(outer), self.known.expanded(inner)
        both = (self.counts > 0) & self.known.with_function(outer) & self.known.with_function(inner)
        rows = np.flatnonzero(both).tolist()
        return sum(int(self.counts[row]) for row in rows if _calls(self.known.kernel_path(row), callers, called))

    def share(self, count: int) -> float:
        """Of all samples taken in the kernel."""
        return count / self.kernel_samples if self.kernel_samples else 0.0


def _calls(path: tuple[str, ...], outer: frozenset[str], inner: frozenset[str]) -> bool:
    for at, name in enumerate(path):
        if name in outer:
            return not inner or not inner.isdisjoint(path[at:])
    return False
