"""Memory cgroups at the end of a window: how many, how fast they grow, who leaks them, and what they cost.

From the tables `census` (the node's count), `leaks` (the ledger's line per path) and the gauges of source
"probe" (the cost of reading one leaf). Only the boot that ran at the end counts: a reboot starts all of it
over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from zombiescope.base.time import HOUR_US, SECOND_US
from zombiescope.query import incidents as known_incidents
from zombiescope.query import trend
from zombiescope.query.memcg_cost import COSTLY, LEAF_GAUGES, ZOMBIES, Forecast, LeafCost, Load, judge
from zombiescope.query.memcg_walks import GENERATIONS, READERS, STEPS, SUMS, VISITS, hertz
from zombiescope.query.node_counters import last_values
from zombiescope.store import columns
from zombiescope.store.columns import Ints, Mask, records
from zombiescope.store.reader import Recording
from zombiescope.store.stacks import KERNEL_KINDS


@dataclass(frozen=True, slots=True)
class Census:
    """Created, removed and released count since the recorder started; lost are records that were not seen."""

    at_us: int
    hierarchy: str | None
    total: int
    live: int | None
    dying: int | None
    created: int | None
    removed: int | None
    released: int | None
    lost: int | None


@dataclass(frozen=True, slots=True)
class LeakCreator:
    comm: str | None
    pid: int | None
    unit: str | None
    container: str | None
    uid: int | None = None
    exe: str | None = None


@dataclass(frozen=True, slots=True)
class Leak:
    """One normalised path; "" sums those that the ledger does not keep apart. Not exact: a lower bound."""

    path: str
    dying: int
    created: int | None
    removed: int | None
    released: int | None
    exact: bool | None
    creator: LeakCreator
    changed_us: int
    names: int | None = None
    """How many different names its cgroups had: one, made again and again, is a container with a restart policy."""


@dataclass(frozen=True, slots=True)
class CgroupsView:
    memory: Census | None
    growth_per_hour: float | None
    verdict: str | None
    why: str
    leaks: tuple[Leak, ...]
    forecast: Forecast


def cgroups(recording: Recording, start_us: int | None = None, end_us: int | None = None) -> CgroupsView:
    """The census at the end of the window; the growth over the window."""
    end = recording.end_us if end_us is None else end_us
    view = CgroupHistory(recording, None, end).at(end, start_us)
    blamed = known_incidents.blaming(known_incidents.incidents(recording), ZOMBIES, (start_us or 0) / 1e6, end / 1e6)
    return view if blamed is None or view.memory is None else replace(view, verdict=COSTLY, why=blamed)


class CgroupHistory:
    """Censuses and charges of a window, read once, to be asked about several moments in it."""

    def __init__(
        self, recording: Recording, start_us: int | None, end_us: int, walked_from_us: int | None = None
    ) -> None:
        """`walked_from_us`: where the window begins in which somebody may be seen walking them."""
        self._recording = recording
        self._walked_from_us = walked_from_us
        self._end_us = end_us
        self._start_us = start_us
        self._boot = recording.boot_at(end_us)
        self._walks: dict[tuple[int | None, int], WalkSamples] = {}

    @cached_property
    def _leaks(self) -> pa.Table:
        return self._recording.table("leaks", self._start_us, self._end_us + 1, boot=self._boot)

    @cached_property
    def _census(self) -> pa.Table:
        counted = self._recording.table("census", self._start_us, self._end_us + 1, boot=self._boot)
        return _largest_hierarchy(counted)

    @cached_property
    def _leaf_cost(self) -> LeafCost:
        return _leaf_cost(self._recording, self._end_us)

    def is_counted(self, at_us: int) -> bool:
        """Whether memory cgroups were counted up to a moment: cheaper than to ask how many there were."""
        return len(columns.cut(self._census, "time", None, at_us + 1)) > 0

    def most_us(self, from_us: int, to_us: int) -> int | None:
        """The last moment of a span at which there were most memory cgroups; None where none were counted in it."""
        counted = columns.cut(self._census, "time", from_us, to_us + 1)
        if len(counted) == 0:
            return None
        totals = columns.numbers(counted.column("total"))
        return int(columns.numbers(counted.column("time"))[np.flatnonzero(totals == totals.max())[-1]])

    def at(self, at_us: int, since_us: int | None = None) -> CgroupsView:
        """How it was at a moment; the growth since another one."""
        found = _leaks_at(columns.cut(self._leaks, "time", None, at_us + 1))
        counted = columns.cut(self._census, "time", None, at_us + 1)
        if len(counted) == 0:
            why = "memory cgroups were not counted in this window; `zombiescope info` lists what was missing"
            return CgroupsView(None, None, None, why, found, Forecast(None, None, None))
        census = _census(counted)
        window = columns.cut(counted, "time", since_us, None)
        times, counted = columns.numbers(window.column("time")).tolist(), window.column("created").to_pylist()
        dying_per_hour, total_per_hour = (
            trend.growth(times, window.column(name).to_pylist(), counted) for name in ("dying", "total")
        )
        walked = self._walk_peak(since_us, at_us)
        load = Load(census.at_us, census.total, census.live, census.dying, dying_per_hour, total_per_hour, walked)
        verdict = judge(self._recording.node.get("kernel"), load, self._leaf_cost)
        return CgroupsView(census, dying_per_hour, verdict.verdict, verdict.why, found, verdict.forecast)

    def _walk_peak(self, since_us: int | None, at_us: int) -> float | None:
        from_us = since_us if self._walked_from_us is None else max(since_us or 0, self._walked_from_us)
        to_us = max(at_us, self._end_us) if self._end_us - (from_us or 0) <= LONGEST_US else at_us
        if (from_us, to_us) not in self._walks:
            self._walks[from_us, to_us] = WalkSamples(self._recording, from_us, to_us + 1)
        return self._walks[from_us, to_us].peak(at_us + 1)


def _largest_hierarchy(rows: pa.Table) -> pa.Table:
    """The rows of the hierarchy that has most memory cgroups at the end; a hybrid node has two."""
    hierarchies = columns.texts(rows.column("hierarchy"))
    totals = columns.numbers(rows.column("total"))
    usable = columns.present(rows.column("total"))
    last = {hierarchy: int(totals[row]) for row, hierarchy in enumerate(hierarchies) if usable[row]}
    if not last:
        return rows.slice(0, 0)
    largest = max(last, key=lambda hierarchy: last[hierarchy])
    same = np.fromiter((hierarchy == largest for hierarchy in hierarchies), bool, len(hierarchies))
    return columns.take(rows, np.flatnonzero(same & usable))


def _census(rows: pa.Table) -> Census:
    (last,) = columns.records(rows.slice(len(rows) - 1))
    return Census(at_us=last.pop("time"), **last)


def growth_per_hour(times_us: Ints, values: Ints) -> float | None:
    return trend.per_hour(times_us.tolist(), values.tolist())


def _leaf_cost(recording: Recording, at_us: int) -> LeafCost:
    return LeafCost(*last_values(recording, "probe", LEAF_GAUGES, at_us).values())


def leaks(recording: Recording, at_us: int, boot: str | None = None) -> tuple[Leak, ...]:
    """The ledger's last line of each path at or before a moment, most dying first, without empty lines."""
    return _leaks_at(recording.table("leaks", None, at_us + 1, boot=boot))


def _leaks_at(rows: pa.Table) -> tuple[Leak, ...]:
    last: dict[str, int] = {}
    for row, path in enumerate(columns.texts(rows.column("path"))):
        last[path or ""] = row
    chosen = columns.take(rows, np.array(sorted(last.values()), np.int64))
    found = [_leak(row) for row in columns.records(chosen)]
    known = [leak for leak in found if leak.dying or leak.created or leak.released]
    return tuple(sorted(known, key=lambda leak: (-leak.dying, leak.path)))


def _leak(row: dict[str, Any]) -> Leak:
    creator = LeakCreator(row["comm"], row["pid"], row["unit"], row["container"], row["uid"], row["exe"])
    exact = None if row["exact"] is None else bool(row["exact"])
    counts = (row["dying"] or 0, row["created"], row["removed"], row["released"])
    return Leak(row["path"] or "", *counts, exact, creator, row["time"], row["names"])


# --- the worst reader of memory statistics ----------------------------------------------------------------------------
# How many CPUs walked memory cgroups in the worst second of a window, from its samples.
#
# Functions and stacks are looked at first: where nothing walks, no sample is read. Of a window longer than an hour only
# its end is looked at, for an hour of a large node is tens of millions of samples.

LONGEST_US = HOUR_US


class WalkSamples:
    """The samples of a window that walked, read once, to be asked about several ends of it."""

    def __init__(self, recording: Recording, start_us: int | None, end_us: int) -> None:
        self._hz = hertz(recording.node)
        self._first_us: int | None = None
        """Of any sample."""
        start_us = max(start_us or 0, end_us - LONGEST_US)
        walking = _walking_stacks(recording, start_us, end_us)
        found = [np.zeros(0, np.int64)]
        for rows in recording.batches("samples", start_us, end_us, ("time", "stack")):
            times = columns.numbers(rows.column("time"))
            if len(times):
                first_us = int(times.min())
                self._first_us = first_us if self._first_us is None else min(first_us, self._first_us)
            if len(walking):
                found.append(times[np.isin(columns.ids(rows.column("stack")), walking)])
            elif self._first_us is not None:
                break
        self._walked_us = np.sort(np.concatenate(found))

    def peak(self, end_us: int) -> float | None:
        """CPUs that walked in the worst second before a moment; None where nobody was sampled by then."""
        if self._first_us is None or self._first_us >= end_us:
            return None
        first, last = np.searchsorted(self._walked_us, [end_us - LONGEST_US, end_us])
        _, counts = np.unique(self._walked_us[first:last] // SECOND_US, return_counts=True)
        return int(counts.max(initial=0)) / self._hz


def _walking_stacks(recording: Recording, start_us: int, end_us: int) -> Ints:
    """The ids of stacks that walk."""
    found = [np.zeros(0, np.int64)]
    lists = (STEPS, READERS, SUMS, frozenset({GENERATIONS}), VISITS)
    frames = recording.table("frames", start_us, end_us, ("frame", "name", "kind"))
    frames = columns.take(frames, columns.among(frames, "name", frozenset().union(*lists)))  # few of very many
    steps, readers, sums, generations, visits = (_named(frames, names) for names in lists)
    if not len(steps) and not (len(readers) and len(sums)) and not len(generations):
        return found[0]
    for rows in recording.batches("stacks", start_us, end_us, ("stack", "frames")):
        has_step, has_reader, has_sum, is_many = (_on_stack(rows, ids) for ids in (steps, readers, sums, generations))
        visits_one = is_many & _ends_in(rows, visits) if is_many.any() else is_many
        found.append(columns.ids(rows.column("stack"))[has_step | (has_reader & has_sum) | visits_one])
    return np.unique(np.concatenate(found))


def _named(frames: pa.Table, names: frozenset[str]) -> Ints:
    """Ids of the kernel's functions of these names."""
    chosen = columns.take(frames, columns.among(frames, "name", names))
    return columns.ids(chosen.column("frame"))[columns.among(chosen, "kind", KERNEL_KINDS)]


def _on_stack(rows: pa.Table, ids: Ints) -> Mask:
    """Which stacks hold one of the functions."""
    if not len(ids):
        return np.zeros(len(rows), bool)
    held = [np.zeros(0, bool)]
    for chunk in rows.column("frames").chunks:
        offsets, elements = columns.list_parts(chunk)
        places = np.repeat(np.arange(len(chunk)), np.diff(offsets))
        found = np.zeros(len(chunk), bool)
        found[places[np.isin(columns.ids(elements), ids)]] = True
        held.append(found)
    return np.concatenate(held)


def _ends_in(rows: pa.Table, ids: Ints) -> Mask:
    """Which stacks have one of the functions innermost."""
    ends = [np.zeros(0, bool)]
    for chunk in rows.column("frames").chunks:
        offsets, elements = columns.list_parts(chunk)
        last = np.maximum(np.asarray(offsets[1:]) - 1, 0)
        inner = columns.ids(elements)
        ends.append(np.isin(inner[last], ids) & (np.diff(offsets) > 0) if len(inner) else np.zeros(len(chunk), bool))
    return np.concatenate(ends)


# --- growth -----------------------------------------------------------------------------------------------------------
# How the memory cgroups of a node grew in a window, and who made and removed some meanwhile.


@dataclass(frozen=True, slots=True)
class Growth:
    """What was added in the window; `per_hour` is that, extrapolated. None where it was not counted twice, and where
    they became fewer: a purge has no pace."""

    seconds: float
    total: int | None
    dying: int | None

    @property
    def dying_per_hour(self) -> float | None:
        return None if self.dying is None or self.dying < 0 or self.seconds <= 0 else self.dying * 3600 / self.seconds


def growth(recording: Recording, memory: Census | None, start_us: int, end_us: int) -> Growth:
    seconds = (end_us - start_us) / 1e6
    if memory is None:
        return Growth(seconds, None, None)
    rows = records(recording.table("census", start_us, end_us + 1))
    same = [row for row in rows if row["hierarchy"] == memory.hierarchy]
    totals = [row["total"] for row in same if row["total"] is not None]
    dying = [row["dying"] for row in same if row["dying"] is not None]
    added = (values[-1] - values[0] if len(values) > 1 else None for values in (totals, dying))
    return Growth(seconds, *added)


def makers(lines: tuple[Leak, ...]) -> tuple[Leak, ...]:
    """The ledger's lines of paths at which cgroups came or went, most first."""
    moved = [line for line in lines if line.created or line.removed or line.released]
    return tuple(sorted(moved, key=lambda line: (-(line.created or 0) - (line.removed or 0), line.path)))
