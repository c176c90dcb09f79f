"""The table `counters`: what the kernel counts for the whole node is the sum of what it counted for each part.

Levels are added too: a node of eight recordings has the memory of eight, and eight times the tasks. Two things are not
sums. Pressure is the kernel's mean over cores, weighted with the time that each was in use (psi.c), so that is what it
is here. And tables that have one size per kernel (conntrack, the cost of reading one cgroup) stay the fault's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zombiescope.lab.wide.axis import NULL, Axis, Slots, added_by_slot, level_by_slot
from zombiescope.lab.wide.cores import CoreFigures
from zombiescope.lab.wide.identity import Identity
from zombiescope.lab.wide.output import Rows, rows_of
from zombiescope.lab.wide.source import Source
from zombiescope.lab.wide.tile import Name, SeriesNumbers, Tile, names_of
from zombiescope.store import schema
from zombiescope.store.columns import Ints

OF_THE_FAULT = ("conntrack", "probe")


class Counters:
    """Of one recording: each counter and each level, by slot."""

    def __init__(self, source: Source, *, backfill: bool) -> None:
        """`backfill`: a level that is first read later was the same before."""
        rows = source.table("counters")
        time, series, value = (source.numbers(rows, name) for name in ("time", "series", "value"))
        self.added: dict[Name, Ints] = {}
        self.levels: dict[Name, Ints] = {}
        self.read_us: dict[Name, Ints] = {}
        """When each level was read."""
        ids: dict[Name, list[int]] = {}
        for number, name in names_of(source).items():
            if name[0] != "interrupts":
                ids.setdefault(name, []).append(number)
        for name, numbers in ids.items():
            mine = np.isin(series, numbers) & (value != NULL)
            if name[3] == "gauge":
                self.read_us[name] = time[mine]
                self.levels[name] = _level(source, time[mine], value[mine], backfill)
            else:
                self.added[name] = _added(source, time[mine], value[mine])


def _added(source: Source, time: Ints, value: Ints) -> Ints:
    added = np.zeros(len(source.slots), np.int64)
    np.add.at(added, source.slots.slot_of(time), value)
    return added


def _level(source: Source, time: Ints, value: Ints, backfill: bool) -> Ints:
    levels = level_by_slot(source.slots, time, value)
    if not backfill and len(time):
        levels = np.where(source.slots.end_us >= time[0], levels, NULL)
    return levels


class NodeCounters:
    """Of the wide node."""

    def __init__(
        self,
        tiles: Sequence[Tile],
        counters: Mapping[int, Counters],
        cores: Mapping[int, CoreFigures],
        axis: Axis,
        wide: Slots,
    ) -> None:
        """`counters` and `cores` by id of the source."""
        self._axis, self._wide = axis, wide
        self._read_us = counters[id(tiles[0].source)].read_us
        self._added: dict[Name, Ints] = {}
        self._levels: dict[Name, Ints] = {}
        self._weights = np.zeros(len(wide), np.int64)
        for tile in tiles:
            own = counters[id(tile.source)]
            weights = np.maximum(cores[id(tile.source)].used_ms(tile, len(wide)), 1)
            self._weights += weights
            for name, added in own.added.items():
                self._add(tile, name, added, weights)
            for name, levels in own.levels.items():
                self._raise(tile, name, levels)
        for name in self._added:
            if name[0] == "pressure":
                self._added[name] //= self._weights

    def _add(self, tile: Tile, name: Name, added: Ints, weights: Ints) -> None:
        if name[0] in OF_THE_FAULT and not tile.is_fault:
            return
        placed = added[tile.slots(len(self._wide))]
        placed = tile.fitted(placed, self._wide)
        placed = placed * weights if name[0] == "pressure" else tile.scaled(placed)
        self._added[name] = self._added[name] + placed if name in self._added else placed

    def _raise(self, tile: Tile, name: Name, levels: Ints) -> None:
        if name[0] in OF_THE_FAULT and not tile.is_fault:
            return
        placed = levels[tile.slots(len(self._wide))]
        known = placed != NULL
        placed = np.where(known, tile.level(np.where(known, placed, 0)), NULL)
        before = self._levels.get(name)
        if before is not None:
            placed = np.where((before == NULL) | ~known, NULL, before + placed)
        self._levels[name] = placed

    def rows(self, numbers: SeriesNumbers, begins: Sequence[int]) -> Rows:
        """Counters that moved; levels that changed, and all of them where a segment begins."""
        pieces = [self._moved(numbers.number(name), added) for name, added in self._added.items()]
        pieces += [self._changed(numbers.number(name), name, begins) for name in self._levels]
        if not pieces:
            pieces = [(np.zeros(0, np.int64),) * 4]
        tick, time, series, value = (np.concatenate(column) for column in zip(*pieces, strict=True))
        return Rows(schema.COUNTERS, tick, [time, series, value])

    def _moved(self, number: int, added: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        by_tick = np.add.reduceat(added, self._wide.first)
        tick = np.flatnonzero(by_tick > 0)
        return tick, self._axis.end_us[tick], np.full(len(tick), number), by_tick[tick]

    def _changed(self, number: int, name: Name, begins: Sequence[int]) -> tuple[Ints, Ints, Ints, Ints]:
        levels = self._levels[name]
        last = np.append(self._wide.first[1:], len(self._wide)) - 1
        by_tick = levels[last]
        changed = np.append(True, by_tick[1:] != by_tick[:-1])
        changed[list(begins)] = True
        time = self._axis.end_us.copy()
        read_us = self._read_us.get(name, time[:0])
        time[self._axis.tick_of(read_us)] = np.minimum(read_us, self._axis.end_us[-1])
        tick = np.flatnonzero(changed & (by_tick != NULL))
        return tick, time[tick], np.full(len(tick), number), by_tick[tick]


# --- cgroups ----------------------------------------------------------------------------------------------------------
# Memory cgroups of the wide node: those of the fault and those of each tile, counted and charged together.
#
# Tiles of one recording are one large job: their cgroups have the same paths, and what is counted by path is added up.

LEVELS = ("total", "live", "dying")
SUMS = ("created", "removed", "released", "lost")
_STATS = ("nr_periods", "nr_throttled", "throttled_us", "memory_max_events", "memory_high_events", "oom_kills",
          "cpu_some_us", "memory_some_us")  # fmt: skip
_LIMITS = ("has_cpu_quota", "has_memory_limit")


def _history(source: Source, rows: Sequence[dict[str, Any]], name: str, *, is_sum: bool) -> Ints:
    """A column by slot; what was not measured counts as nothing."""
    known = [row for row in rows if row[name] is not None]
    times, values = (np.array([row[key] for row in known], np.int64) for key in ("time", name))
    if is_sum:
        return added_by_slot(source.slots, times, values)
    return np.maximum(level_by_slot(source.slots, times, values), 0)


def _on(tile: Tile, history: Ints, wide: Slots, *, is_sum: bool) -> Ints:
    """A column of the tile in each slot of the wide node; a sum goes on where the recording begins anew."""
    placed = history[tile.slots(len(wide))]
    return np.cumsum(tile.scaled(tile.fitted(placed, wide))) if is_sum else tile.level(placed)


# --- census -----------------------------------------------------------------------------------------------------------


def census(tiles: Sequence[Tile], axis: Axis, wide: Slots) -> Rows:
    """The fault's rows, with what the others have added to its largest hierarchy."""
    rows = tiles[0].source.rows("census")
    largest = _largest(rows)
    more = {name: np.zeros(len(wide), np.int64) for name in (*LEVELS, *SUMS)}
    for tile in tiles[1:]:
        own = tile.source.rows("census")
        own = [row for row in own if row["hierarchy"] == _largest(own)]
        for name, added in more.items():
            is_sum = name in SUMS
            added += _on(tile, _history(tile.source, own, name, is_sum=is_sum), wide, is_sum=is_sum)
    times = np.array([row["time"] for row in rows], np.int64)
    made = []
    for row, slot in zip(rows, wide.slot_of(times).tolist(), strict=True):
        others = {name: int(added[slot]) for name, added in more.items() if row["hierarchy"] == largest}
        made.append(row | {name: row[name] + added for name, added in others.items() if row[name] is not None})
    return rows_of(schema.CENSUS, axis.tick_of(times).tolist(), [tuple(row.values()) for row in made])


def _largest(rows: Sequence[dict[str, Any]]) -> str | None:
    last = {row["hierarchy"]: row["total"] for row in rows if row["total"] is not None}
    return max(last, key=lambda hierarchy: last[hierarchy], default=None)


# --- leaks ------------------------------------------------------------------------------------------------------------

_CHARGED = ("dying", "created", "removed", "released")


@dataclass(slots=True)
class _Charge:
    """One path: who is charged, and how much in each slot."""

    row: dict[str, Any]
    by_slot: dict[str, Ints]


def leaks(tiles: Sequence[Tile], identities: Sequence[Identity], axis: Axis, wide: Slots) -> Rows:
    """The fault's lines as they are; those of other paths when they change."""
    fault = tiles[0].source.rows("leaks")
    charges: dict[str, _Charge] = {}
    for tile, identity in zip(tiles[1:], identities[1:], strict=True):
        for path, rows in _by(tile.source.rows("leaks"), "path").items():
            _charge(charges, path, rows, tile, identity, wide)
    rows = [_with_others(row, charges.get(row["path"]), wide) for row in fault]
    fault_paths = {row["path"] for row in fault}
    for path, charge in charges.items():
        if path not in fault_paths:
            rows += _lines(charge, axis, wide)
    rows.sort(key=lambda row: int(row["time"]))
    ticks = axis.tick_of(np.array([row["time"] for row in rows], np.int64)).tolist()
    return rows_of(schema.LEAKS, ticks, [tuple(row[name] for name in schema.LEAKS.names) for row in rows])


def _by(rows: Sequence[dict[str, Any]], key: str) -> dict[Any, list[dict[str, Any]]]:
    found: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return found


def _charge(
    charges: dict[str, _Charge], path: str, rows: list[dict[str, Any]], tile: Tile, identity: Identity, wide: Slots
) -> None:
    if path not in charges:
        row = {**rows[-1], "pid": identity.pid(rows[-1]["pid"])}
        charges[path] = _Charge(row, {name: np.zeros(len(wide), np.int64) for name in _CHARGED})
    for name, total in charges[path].by_slot.items():
        is_sum = name != "dying"
        total += _on(tile, _history(tile.source, rows, name, is_sum=is_sum), wide, is_sum=is_sum)


def _with_others(row: dict[str, Any], charge: _Charge | None, wide: Slots) -> dict[str, Any]:
    if charge is None:
        return row
    slot = int(wide.slot_of(np.array([row["time"]], np.int64))[0])
    return row | {name: (row[name] or 0) + int(total[slot]) for name, total in charge.by_slot.items()}


def _lines(charge: _Charge, axis: Axis, wide: Slots) -> Iterator[dict[str, Any]]:
    last = np.append(wide.first[1:], len(wide)) - 1
    figures = np.stack([total[last] for total in charge.by_slot.values()])
    changed = np.append(True, (figures[:, 1:] != figures[:, :-1]).any(axis=0))
    for tick in np.flatnonzero(changed).tolist():
        counts = dict(zip(charge.by_slot, figures[:, tick].tolist(), strict=True))
        yield {**charge.row, **counts, "time": int(axis.end_us[tick])}


# --- statistics -------------------------------------------------------------------------------------------------------


_Sums = dict[tuple[int, str], dict[str, Any]]
"""By tick and cgroup."""


def cgroup_stats(tiles: Sequence[Tile], axis: Axis, wide: Slots) -> Rows:
    """The fault's rows, and one for each tick and cgroup of the others."""
    fault = tiles[0].source.rows("cgroup_stats")
    sums: _Sums = {}
    for tile in tiles[1:]:
        rows = tile.source.rows("cgroup_stats")
        times = np.array([row["time"] for row in rows], np.int64)
        chosen, moved = tile.spread(times, wide, 0, len(wide))
        for place, tick in zip(chosen.tolist(), axis.tick_of(moved).tolist(), strict=True):
            _sum_up(sums, tick, rows[place], tile, int(axis.end_us[tick]))
    ticks = axis.tick_of(np.array([row["time"] for row in fault], np.int64)).tolist()
    made = [tuple(row.values()) for row in [*fault, *sums.values()]]
    return rows_of(schema.CGROUP_STATS, [*ticks, *(tick for tick, _ in sums)], made)


def _sum_up(
    sums: dict[tuple[int, str], dict[str, Any]], tick: int, row: dict[str, Any], tile: Tile, at_us: int
) -> None:
    known = sums.setdefault((tick, row["cgroup"]), {**dict.fromkeys(row), "cgroup": row["cgroup"], "time": at_us})
    for name in _STATS:
        if row[name] is not None:
            known[name] = (known[name] or 0) + round(row[name] * tile.share)
    for name in _LIMITS:
        if row[name] is not None:
            known[name] = max(known[name] or 0, row[name])
