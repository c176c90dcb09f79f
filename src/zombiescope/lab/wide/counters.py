"""The table `counters`: what the kernel counts for the whole node is the sum of what it counted for each part.

Levels are added too: a node of eight recordings has the memory of eight, and eight times the tasks. Two things are not
sums. Pressure is the kernel's mean over cores, weighted with the time that each was in use (psi.c), so that is what it
is here. And tables that have one size per kernel (conntrack, the cost of reading one cgroup) stay the fault's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from zombiescope.lab.wide.axis import NULL, Axis, Slots, level_by_slot
from zombiescope.lab.wide.cores import CoreFigures
from zombiescope.lab.wide.output import Rows
from zombiescope.lab.wide.series import Name, SeriesNumbers, names_of
from zombiescope.lab.wide.source import Source
from zombiescope.lab.wide.tile import Tile
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
