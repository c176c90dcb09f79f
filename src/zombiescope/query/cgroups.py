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

from zombiescope.query import incidents as known_incidents
from zombiescope.query import trend
from zombiescope.query.memcg_cost import COSTLY, LEAF_GAUGES, ZOMBIES, Forecast, LeafCost, Load, judge
from zombiescope.query.memcg_walk_peak import LONGEST_US, WalkSamples
from zombiescope.query.series import last_values
from zombiescope.store import columns
from zombiescope.store.columns import Ints
from zombiescope.store.reader import Recording


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
