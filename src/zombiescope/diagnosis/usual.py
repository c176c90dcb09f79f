"""What somebody used before: the background that a hog is told from.

On a large node many programs are in the kernel for a core's worth at any time, and have been for days. What is new
among them is told by what they had before, and not by the size of the node: in the seconds before it began, in ten
seconds just before the window, in ten seconds ten minutes before that, and hour by hour in the rollups. Of these the
least counts: who had little at one of those times began since. None: nothing is known of any earlier time, as in the
first seconds of a recording.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from zombiescope.base.baseline import percentile
from zombiescope.base.time import HOUR_US, SECOND_US
from zombiescope.diagnosis import sample_grid
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.sample_grid import SampleGrid
from zombiescope.diagnosis.sample_index import SampledTask
from zombiescope.diagnosis.task_groups import COMM, KEYS, THREAD, kind
from zombiescope.store import columns
from zombiescope.store.columns import Ints

LEAST_US = 5 * SECOND_US // 2
"""Less of an earlier time says nothing about it."""
MOST_US = 30 * SECOND_US
SLICE_US = 10 * SECOND_US
APART_US = 5 * SECOND_US
"""Between the window and the time before it: what is suspected for some seconds before anybody looks."""
LONG_AGO_US = 600 * SECOND_US
LEAST_HOURS = 3
DAY_HOURS = 24


class _Past(NamedTuple):
    """Samples of an earlier time."""

    grid: SampleGrid
    from_us: int
    to_us: int


class Usual:
    """Asked about one window; groups are looked up once a level."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._groups: dict[tuple[int, str], tuple[Ints, dict[str, int]]] = {}
        self._known: dict[tuple[object, ...], float] = {}

    def cores(self, level: str, name: str, task: SampledTask, from_us: int) -> float | None:
        """CPUs in the kernel of a group before a moment. Of a thread: of the busiest thread of its name, because one
        reader after the other is the same as one that stays."""
        least: float | None = None
        for past in self._pasts(from_us):
            had = self._had(past, level, name, task)
            least = had if least is None else min(least, had)
            if least == 0:  # it was not there; what was even earlier need not be read
                return least
        hours = None if least is None else self._hours(level, name, task)
        return least if least is None or hours is None else min(least, hours)

    def kinds_before(self) -> dict[str, float] | None:
        """Kind -> CPUs in the kernel before the window; None where that was not recorded."""
        pasts = self._before
        if not pasts:
            return None
        each = [self._by_kind(past) for past in pasts]
        return {name: min(one.get(name, 0.0) for one in each) for name in set().union(*each)}

    # --- earlier times -----------------------------------------------------------------------------------------------

    def _pasts(self, from_us: int) -> Iterator[_Past]:
        grid = self._facts.samples
        inside_us = from_us - grid.start_us
        if inside_us >= LEAST_US:
            inside = _Past(grid, max(grid.start_us, from_us - MOST_US), from_us)
            if _is_sampled(self._facts, inside):
                yield inside
        elif inside_us > 0:  # it was not there yet when the window began
            yield from (past for past in self._just_before if past.to_us - past.from_us >= LEAST_US - inside_us)
        yield from self._before

    @cached_property
    def _just_before(self) -> tuple[_Past, ...]:
        facts = self._facts
        return tuple(_loaded(facts, max(facts.recording.start_us, facts.start_us - SLICE_US), facts.start_us))

    @cached_property
    def _before(self) -> tuple[_Past, ...]:
        """Not kept with the facts: samples of a large node are many, and nobody else asks for these."""
        return tuple(_read(self._facts))

    # --- what was used then ------------------------------------------------------------------------------------------

    def _had(self, past: _Past, level: str, name: str, task: SampledTask) -> float:
        """Looked up once: hundreds of threads of one name have begun together."""
        name = (task.comm or name) if level == THREAD else name
        at = (id(past.grid), past.from_us, past.to_us, level, name)
        if at not in self._known:
            find = self._busiest_thread if level == THREAD else self._all_of
            self._known[at] = find(past, level, name)
        return self._known[at]

    def _all_of(self, past: _Past, level: str, name: str) -> float:
        group, numbers = self._grouped(past, level)
        part, seconds = _part(past)
        mine = (group[part] == numbers.get(name, -2)) & past.grid.in_kernel[part]
        counts = np.bincount(_seconds(past, part)[mine], minlength=seconds)
        return percentile(counts.tolist(), 75) / past.grid.hz

    def _busiest_thread(self, past: _Past, _level: str, comm: str) -> float:
        group, numbers = self._grouped(past, COMM)
        part, seconds = _part(past)
        mine = (group[part] == numbers.get(comm, -2)) & past.grid.in_kernel[part]
        place, counts = np.unique(past.grid.task[part][mine] * seconds + _seconds(past, part)[mine], return_counts=True)
        most = np.zeros(seconds, np.int64)
        np.maximum.at(most, place % seconds, counts)
        return percentile(most.tolist(), 50) / past.grid.hz

    def _by_kind(self, past: _Past) -> dict[str, float]:
        group, names = past.grid.groups(kind)
        part, seconds = _part(past)
        mine = group[part][past.grid.in_kernel[part]]
        counts = np.bincount(mine[mine >= 0], minlength=len(names))
        return {name: int(count) / past.grid.hz / seconds for name, count in zip(names, counts, strict=True)}

    def _grouped(self, past: _Past, level: str) -> tuple[Ints, dict[str, int]]:
        at = (id(past.grid), level)
        if at not in self._groups:
            group, names = past.grid.groups(KEYS[level])
            self._groups[at] = group, {name: number for number, name in enumerate(names)}
        return self._groups[at]

    # --- hours -------------------------------------------------------------------------------------------------------

    def _hours(self, level: str, name: str, task: SampledTask) -> float | None:
        """Of the last day, by the name that the rollups have: a thread has no more than its unit. None where they reach
        back too little, or do not know it: a container that was started today has no yesterday."""
        before_us = self._facts.start_us // HOUR_US * HOUR_US
        hours = self._facts.always(("kernel hours", before_us), lambda: _read_hours(self._facts, before_us))
        rolled_up = task.unit or task.container or task.comm or ""
        used = hours.used.get(rolled_up)
        if used is None or hours.many < LEAST_HOURS or (level != THREAD and name != rolled_up):
            return None
        return percentile([*used, *[0.0] * (hours.many - len(used))], 95)


class _Hours(NamedTuple):
    many: int
    used: dict[str, list[float]]
    """CPUs in the kernel, in the hours in which there were any."""


def _read(facts: Facts) -> Iterator[_Past]:
    first_us, end_us = facts.recording.start_us, facts.start_us - APART_US
    just_before = max(first_us, end_us - SLICE_US)
    long_before = max(first_us, end_us - LONG_AGO_US)
    for from_us in sorted({just_before, *([long_before] if just_before - long_before >= SLICE_US else [])}):
        to_us = min(from_us + SLICE_US, end_us)
        if to_us - from_us >= LEAST_US:
            yield from _loaded(facts, from_us, to_us)


def _loaded(facts: Facts, from_us: int, to_us: int) -> Iterator[_Past]:
    """Nothing where stacks were not taken: blind is not quiet."""
    if to_us > from_us:
        grid = _samples(facts, from_us, to_us)
        if len(grid) or _sampler_ran(facts, from_us, to_us):
            yield _Past(grid, from_us, to_us)


def _samples(facts: Facts, from_us: int, to_us: int) -> SampleGrid:
    """The last three are kept for all windows: what was long before many of them is the recording's beginning."""
    kept: dict[tuple[int, int], SampleGrid] = facts.always("samples before", dict)
    grid = kept.pop((from_us, to_us), None)
    if grid is None:
        while len(kept) > 2:
            kept.pop(next(iter(kept)))
        grid = sample_grid.load(facts.recording, from_us, to_us, facts.hz, facts.dictionaries)
    kept[from_us, to_us] = grid
    return grid


def _is_sampled(facts: Facts, past: _Past) -> bool:
    part, _ = _part(past)
    return part.stop > part.start or _sampler_ran(facts, past.from_us, past.to_us)


def _sampler_ran(facts: Facts, from_us: int, to_us: int) -> bool:
    """On cores that idled, whose samples are counted and not kept."""
    taken = facts.recording.table("cores", from_us + 1, to_us + 1, ("samples",)).column("samples")
    return bool(columns.numbers(taken)[columns.present(taken)].any())


def _part(past: _Past) -> tuple[slice, int]:
    """Which samples, and how many seconds."""
    first, last = np.searchsorted(past.grid.time_us, [past.from_us, past.to_us])
    return slice(int(first), int(last)), max(1, -(-(past.to_us - past.from_us) // SECOND_US))


def _seconds(past: _Past, part: slice) -> Ints:
    """Counted back from the end, so that only the first may be cut short."""
    at: Ints = (past.to_us - 1 - past.grid.time_us[part]) // SECOND_US
    return at


def _read_hours(facts: Facts, before_us: int) -> _Hours:
    """A recorder that was restarted has several rows of an hour, which add up."""
    rows = facts.recording.table(
        "unit_hours", before_us - DAY_HOURS * HOUR_US, before_us, ("time", "unit", "kernel_ms")
    )
    added: dict[tuple[str, int], float] = defaultdict(float)
    for row in columns.records(rows):
        if row["unit"] is not None and row["kernel_ms"] is not None:
            added[row["unit"], row["time"]] += row["kernel_ms"] / 3_600_000
    used: dict[str, list[float]] = defaultdict(list)
    for (unit, _), cores in added.items():
        used[unit].append(cores)
    return _Hours(len({at for _, at in added}), dict(used))
