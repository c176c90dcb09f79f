"""Who ran: the samples of a window by process, thread, unit or pod, and the same over time as tracks.

A sample stands for the time between two of them, so samples by the rate are CPU seconds, and those of a window by its
length are CPUs: 1.0 is one core all the time, a process with many threads has more.

Cost: one pass over the samples of the window.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zombiescope.query.groups import Group, Groups, groups
from zombiescope.query.levels import Level
from zombiescope.query.rate import rate
from zombiescope.query.selection import ImportFacts, Selection
from zombiescope.store.columns import Ints

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ran:
    """`cpus` is None where the rate of sampling is not known."""

    group: Group
    samples: int
    ratio: float
    kernel_ratio: float
    cpus: float | None


@dataclass(frozen=True, slots=True)
class WhoRan:
    """Most first; `others` are groups that are not listed."""

    total: int
    ran: tuple[Ran, ...]
    others: int
    other_samples: int


@dataclass(frozen=True, slots=True)
class Track:
    """`samples[column]` of one group, and how many of them the kernel had."""

    group: Group
    samples: Counts
    kernel: Counts


@dataclass(frozen=True, slots=True)
class Tracks:
    start_us: int
    column_us: float
    columns: int
    tracks: tuple[Track, ...]
    others: int


def who_ran(selection: Selection, by: Level, top: int, seconds: float | None = None) -> WhoRan:
    """`seconds`: how long the window was recorded; without it, its length."""
    found = groups(selection, by)
    counted = _counted(selection, found, 1)
    order, total = counted.order(), int(counted.samples.sum())
    hz = rate(selection)
    elapsed = (selection.end_us - selection.start_us) / 1e6 if seconds is None else seconds
    available = hz * elapsed if hz and elapsed > 0 else None
    ran = []
    for number in order[:top]:
        samples, kernel = (int(each[0]) for each in counted.of(number))
        ratios = (samples / total, kernel / samples, None if available is None else samples / available)
        ran.append(Ran(found.all[number], samples, *ratios))
    return WhoRan(total, tuple(ran), max(0, len(order) - top), total - sum(each.samples for each in ran))


def tracks(selection: Selection, by: Level, top: int, columns: int) -> Tracks:
    found = groups(selection, by)
    counted = _counted(selection, found, columns)
    order = counted.order()
    column_us = (selection.end_us - selection.start_us) / columns
    made = tuple(Track(found.all[number], *counted.of(number)) for number in order[:top])
    return Tracks(selection.start_us, column_us, columns, made, max(0, len(order) - top))


@dataclass(frozen=True, slots=True)
class _Counted:
    """Samples by `keys`, which are group * columns + column, each once and in order."""

    columns: int
    keys: Ints
    samples: Counts
    kernel: Counts

    def order(self) -> list[int]:
        """The groups that ran, most samples first."""
        total = np.bincount(self.keys // self.columns, self.samples)
        ran = np.flatnonzero(total)
        chosen: list[int] = ran[np.argsort(-total[ran], kind="stable")].tolist()
        return chosen

    def of(self, group: int) -> tuple[Counts, Counts]:
        first, last = np.searchsorted(self.keys, (group * self.columns, (group + 1) * self.columns))
        place = self.keys[first:last] - group * self.columns
        spread = []
        for each in (self.samples, self.kernel):
            dense = np.zeros(self.columns, np.int64)
            dense[place] = each[first:last]
            spread.append(dense)
        return spread[0], spread[1]


def _counted(selection: Selection, found: Groups, columns: int) -> _Counted:
    """One pass; what is kept of each part is only which group ran in which column."""
    in_kernel = selection.stacks.in_kernel()
    weighted = ImportFacts.of(selection.recording).weighted
    length = max(1, selection.end_us - selection.start_us)
    kept: list[tuple[Ints, ...]] = [(np.zeros(0, np.int64),) * 3]
    for time, task, stack, period in selection.columns("time", "task", "stack", "period"):
        column = np.clip((time - selection.start_us) * columns // length, 0, columns - 1)
        weight = period if weighted else np.ones(len(time), np.int64)
        kernel = np.where(in_kernel[selection.stacks.rows_of(stack)], weight, 0)
        kept.append(_summed(found.of(task) * columns + column, weight, kernel))
    return _Counted(columns, *_summed(*(np.concatenate(each) for each in zip(*kept, strict=True))))


def _summed(keys: Ints, *values: Ints) -> tuple[Ints, ...]:
    """Each key once, in order, and the sums of what stood beside it."""
    once, place = np.unique(keys, return_inverse=True)
    return once, *(np.bincount(place, each, len(once)).astype(np.int64) for each in values)
