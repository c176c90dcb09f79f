"""The samples of a window, ready to be asked who held how much of the kernel, when and in which functions.

Everything is arrays over samples; `in_kernel` and the groups are looked up once per stack and per task. A group is what
samples are added up by: a thread, a comm, a unit or cgroup, or the children of one parent. Storms are made of tasks
that live for a millisecond, so a rule about single tasks would see nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis.ancestry import KTHREADD, Ancestor, Ancestry
from zombiescope.diagnosis.dictionaries import Dictionaries
from zombiescope.diagnosis.kernel_profile import KernelProfile
from zombiescope.diagnosis.sample_index import NOBODY, SampledTask, SampleIndex
from zombiescope.diagnosis.thresholds import MOSTLY_SHARE, SAMPLE_RATE_LEAST_SAMPLES
from zombiescope.query.selection import Selection
from zombiescope.query.stacks import Stacks
from zombiescope.store.columns import Ints, Mask
from zombiescope.store.reader import Recording

BIN_US = 250_000
"""A hog is looked for in any second that starts at a quarter of a second."""
SECOND_BINS = SECOND_US // BIN_US
MOST_SORTED = 10_000
Number = TypeVar("Number", np.int64, np.float64)


__all__ = ["BIN_US", "KTHREADD", "SECOND_BINS", "SampleGrid", "Starter", "load", "moving_sum"]


class SampleGrid:
    """All samples of [start_us, end_us) that are not idle, in the order of time."""

    def __init__(
        self, span: tuple[int, int], hz: float, rows: tuple[Ints, Ints, Ints, Ints], known: SampleIndex
    ) -> None:
        self.start_us, self.end_us = span
        self.hz = hz
        self.time_us, self.cpu, self.task, self.stack = rows
        self.known = known
        self._whole: SampleGrid | None = None
        """What it is a part of. Its tasks are among those, so what is known of them is asked there, once."""

    def between(self, from_us: int, to_us: int) -> SampleGrid:
        """The samples of a part of the time; bins are counted from where they were."""
        part = self.part(from_us, to_us)
        rows = tuple(column[part] for column in (self.time_us, self.cpu, self.task, self.stack))
        found = SampleGrid((self.start_us, self.end_us), self.hz, rows, self.known)  # type: ignore[arg-type]
        found._whole = self._whole or self
        return found

    def part(self, from_us: int, to_us: int) -> slice:
        """Where its samples are."""
        first, last = np.searchsorted(self.time_us, [from_us, to_us])
        return slice(int(first), int(last))

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
        found: list[int] = self.tasks_in(slice(None))[0].tolist()
        return found

    def with_function(self, *names: str) -> Mask:
        """Samples on whose stack one of the kernel's functions is."""
        stacks = self.known.with_function(frozenset(names))
        if not stacks.any():  # nobody called it, as most functions that a pattern asks for
            return np.zeros(len(self), bool)
        found: Mask = stacks[self.stack]
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
        number, names = self.tasks_by(key)
        return number[self.task], list(names)

    def tasks_by(self, key: Callable[[SampledTask], str | None]) -> tuple[Ints, dict[str, int]]:
        """The same for each task; and the number of each name. What a key of a module makes of each task is kept,
        because many ask for the same: a storm has thousands of tasks. Of a part there may be names without samples."""
        kept = "<locals>" not in getattr(key, "__qualname__", "<locals>")
        if kept and self._whole is not None:
            return self._whole.tasks_by(key)
        found = self._grouped.get(key) or self._group(key)
        if kept:
            self._grouped[key] = found
        return found

    @cached_property
    def _grouped(self) -> dict[Callable[[SampledTask], str | None], tuple[Ints, dict[str, int]]]:
        return {}

    def _group(self, key: Callable[[SampledTask], str | None]) -> tuple[Ints, dict[str, int]]:
        """The number of the group of each task."""
        names: dict[str, int] = {}
        number = np.full(max(self._used, default=-1) + 2, -1, np.int64)
        for task in self._used:
            name = key(self.task_of(task)) if task >= 0 else None
            number[task] = -1 if name is None else names.setdefault(name, len(names))
        return number, names

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

    def profile(self, chosen: Mask) -> KernelProfile:
        """What the kernel did in the chosen samples."""
        return KernelProfile(self.known, self.counts(chosen & self.in_kernel), int(np.count_nonzero(chosen)))

    def tasks_in(self, chosen: Mask | Ints | slice) -> tuple[Ints, Ints]:
        """The numbers of the tasks of the chosen samples, and how many samples each has."""
        numbers = self.task[chosen]
        if len(numbers) < MOST_SORTED or numbers.min() < 0:
            return np.unique(numbers, return_counts=True)
        counts = np.bincount(numbers)  # tasks are few where samples are millions: nothing has to be sorted
        tasks = np.flatnonzero(counts)
        return tasks, counts[tasks]

    def hottest_task(self, chosen: Mask | Ints) -> tuple[SampledTask, int] | None:
        """The task with most of the chosen samples, and how many."""
        tasks, counts = self.tasks_in(chosen)
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

    @property
    def ancestry(self) -> Ancestry:
        """Of all tasks that are known around these samples, so that a part of the time has the same parents."""
        return self.known.ancestry

    def starter(self, chosen: Mask | Ints, *, or_itself: bool = False) -> Starter | None:
        """Who started most of what the chosen samples are of: of all that stand above most of them the lowest, but not
        one of many short-lived children itself. Neither pid 1 nor the kernel is anybody.

        `or_itself`: samples of a process count for itself, too.
        """
        found = Lineage(self.ancestry)
        tasks, counts = self.tasks_in(chosen)
        for number, count in zip(tasks.tolist(), counts.tolist(), strict=True):
            task = self.task_of(number)
            found.add(number, count, is_thread=task.tid != task.pid, or_itself=or_itself)
        return found.starter(len(tasks))

    def below(self, pids: Collection[int]) -> Mask:
        """Samples of the processes with these pids and of all that descend from them."""
        whole = self._whole or self
        number = np.zeros(max(whole._used, default=-1) + 2, bool)
        for pid in pids:
            number[whole._descendants.get(pid, [])] = True
        found: Mask = number[self.task]
        return found

    @cached_property
    def _descendants(self) -> dict[int, list[int]]:
        """A pid -> the sampled tasks of its process, and of all that descend from it."""
        found: dict[int, list[int]] = {}
        for task in self._used:
            for pid in {one.pid for one in self.ancestry.line(task)} if task >= 0 else ():
                found.setdefault(pid, []).append(task)
        return found

    def parents(self, chosen: Mask) -> set[int]:
        """The pids of those that forked the processes of the chosen samples; neither pid 1 nor the kernel."""
        lines = (self.ancestry.line(number) for number in np.unique(self.task[chosen]).tolist())
        return {line[1].pid for line in lines if len(line) > 1}

    def lifetimes_us(self, chosen: Mask) -> Ints:
        """How long each task of the chosen samples was seen, from its first sample to its last."""
        tasks, _ = self.tasks_in(chosen)
        numbers, times = self.task[chosen], self.time_us[chosen]
        first = np.zeros(int(tasks.max(initial=-1)) + 2, np.int64)
        last = first.copy()
        first[numbers[::-1]] = times[::-1]  # in the order of time, and what is written last stands
        last[numbers] = times
        seen: Ints = last[tasks] - first[tasks]
        return seen


def moving_sum(counts: npt.NDArray[Number], bins: int) -> npt.NDArray[Number]:
    """[group, first bin] sums over so many bins; none where the window has fewer."""
    summed = np.cumsum(np.pad(counts, ((0, 0), (1, 0))), axis=1)
    moving: npt.NDArray[Number] = summed[:, bins:] - summed[:, :-bins]
    return moving


DEFAULT_HZ = 99.0


def _measured_hz(time_us: Ints, cpu: Ints) -> float:
    """How often a busy core was sampled: perf takes 4,000 a second by default, fewer where the kernel throttles it.

    Between two samples of one core lies a period, or more where the core was idle meanwhile; so it is the short ones
    that tell.
    """
    order = np.lexsort((time_us, cpu))
    between = np.diff(time_us[order])[np.diff(cpu[order]) == 0]
    between = between[between > 0]
    return 1e6 / float(np.percentile(between, 25)) if len(between) >= SAMPLE_RATE_LEAST_SAMPLES else DEFAULT_HZ


def load(recording: Recording, start_us: int, end_us: int, hz: float | None, named: Dictionaries) -> SampleGrid:
    """`hz` None: a profile of others does not say how often it was sampled; then it is measured."""
    selection = Selection(recording, start_us, end_us, known=named.stacks(start_us, end_us))
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
    hz = hz or _measured_hz(time_us, cpu)
    index = SampleIndex(selection.stacks.only(used), named.tasks(start_us, end_us))
    return SampleGrid((start_us, end_us), hz, rows, index)


# --- lineage ----------------------------------------------------------------------------------------------------------
# Who started most of some tasks: samples added up over their ancestors.
#
# A storm is made of children that live for milliseconds, and of their parents, who may be such children, too. Whoever
# stands above most of the storm is to blame for it, and of those who do, the lowest: the loop, not the shell in which
# it was typed. The children of one short-lived parent can be most of a short window, and of a longer one never; so one
# of many is passed over, and the storm has the same culprit in every window.


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
        return self.share >= MOSTLY_SHARE


class Lineage:
    def __init__(self, ancestry: Ancestry) -> None:
        self._ancestry = ancestry
        self._above: dict[Hashable, tuple[Ancestor, int]] = {}
        """By identity: who, and how many stand above it."""
        self._samples: Counter[Hashable] = Counter()
        self._known = self._threads = 0

    def add(self, number: int, samples: int, *, is_thread: bool, or_itself: bool) -> None:
        line = self._ancestry.line(number)
        above = line if is_thread or or_itself else line[1:]
        if above or self._ancestry.knows_parent(number):
            self._known += samples
        if not above:
            return
        self._threads += samples if is_thread else 0
        for place, one in enumerate(above):
            key = one.pid if one.life is None else one.life
            self._above[key] = one, len(above) - place
            self._samples[key] += samples

    def starter(self, tasks: int) -> Starter | None:
        if not self._samples:
            return None
        most = [key for key, samples in self._samples.items() if samples >= MOSTLY_SHARE * self._known]
        lowest = sorted(most, key=lambda key: -self._above[key][1])
        key = next((one for one in lowest if not self._passes(one)), None)
        if key is None:
            key = max(self._samples, key=lambda one: (self._samples[one], self._above[one][1]))
        key, samples = self._peers_below(key) or (key, self._samples[key])
        who = self._above[key][0]
        task = None if who.life is None else self._ancestry.task(who.life)
        return Starter(who.pid, task, samples, samples / self._known, tasks, self._threads > self._known / 2)

    def _passes(self, key: Hashable) -> bool:
        """It is itself one of many that come and go."""
        life = self._above[key][0].life
        return life is not None and self._ancestry.is_one_of_many(life)

    def _peers_below(self, key: Hashable) -> tuple[Hashable, int] | None:
        """Processes of one name that last, below the one that was found, and have most of it together: six workers, one
        after the other or beside each other, are who forks, and not the script that ran them all."""
        together: Counter[str] = Counter()
        chief: dict[str, Hashable] = {}
        for one, (who, depth) in self._above.items():
            if who.life is None or depth <= self._above[key][1] or not self._ancestry.lasts(who.life):
                continue
            name = self._ancestry.task(who.life).comm or ""
            together[name] += self._samples[one]
            if name not in chief or self._samples[one] > self._samples[chief[name]]:
                chief[name] = one
        name, samples = max(together.items(), key=lambda each: each[1], default=("", 0))
        return (chief[name], min(samples, self._known)) if samples >= MOSTLY_SHARE * self._known else None
