"""The tables `cores` and `interrupts`: each core's own figures, moved to where it is on the wide node."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from zombiescope.lab.wide.axis import NULL, Axis, Slots
from zombiescope.lab.wide.output import Rows
from zombiescope.lab.wide.series import SeriesNumbers
from zombiescope.lab.wide.source import Source
from zombiescope.lab.wide.tile import Room, Tile
from zombiescope.store import schema
from zombiescope.store.columns import Ints

FIGURES = tuple(name for name in schema.CORES.names if name not in ("time", "interval_us", "cpu"))
_LONGEST = FIGURES.index("max_gap_us")
NEVER_US = np.iinfo(np.int64).max
_IN_USE = tuple(f"{mode}_ms" for mode in schema.CPU_MODES if mode not in ("idle", "guest", "guest_nice"))


class CoreFigures:
    """Of one recording: the figures of each core in each slot."""

    def __init__(self, source: Source) -> None:
        self._source = source
        rows = source.table("cores")
        tick = source.axis.tick_of(source.numbers(rows, "time"))
        core = np.searchsorted(source.cpus, source.numbers(rows, "cpu"))
        figures = np.full((len(source.axis), len(source.cpus), len(FIGURES)), NULL)
        for place, name in enumerate(FIGURES):
            figures[tick, core, place] = source.numbers(rows, name)
        self.seen: npt.NDArray[np.bool_] = np.zeros(figures.shape[:2], bool)
        self.seen[tick, core] = True
        self._figures = figures

    @cached_property
    def by_slot(self) -> Ints:
        """[slot, core, figure]; a late tick's longest gap ends in its last slot."""
        slots = self._source.slots
        shared = slots.shared(self._figures)
        longest = self._figures[slots.tick][:, :, _LONGEST]
        ends = (slots.piece == slots.pieces - 1)[:, None]
        shared[:, :, _LONGEST] = np.where(ends | (longest == NULL), longest, 0)
        return shared

    @cached_property
    def _used_ms(self) -> Ints:
        """[slot, core]: time in which the core had something to do or to wait for."""
        places = [FIGURES.index(name) for name in _IN_USE]
        used: Ints = np.maximum(self.by_slot[:, :, places], 0).sum(axis=2)
        return used

    def used_ms(self, tile: Tile, count: int) -> Ints:
        """Of the tile's cores together, in each of the first slots of the wide node."""
        used: Ints = self._used_ms[:, self._ranks(tile)].sum(axis=1)[tile.slots(count)]
        return used

    def _ranks(self, tile: Tile) -> list[int]:
        return [self._source.cpus.index(cpu) for cpu in tile.cores]

    def rows(self, tile: Tile, axis: Axis, wide: Slots, first: int, last: int) -> Rows:
        """The tile's rows of some ticks."""
        begin, end = int(wide.first[first]), int(wide.first[last]) if last < len(axis) else len(wide)
        used = tile.slots(end)[begin:]
        places = wide.first[first:last] - begin
        ranks = self._ranks(tile)
        known = self._without_strange_gaps(self.by_slot[used][:, ranks], tile, begin, end)
        figures = _together(_fitted(known, tile.room(wide, begin, end)), places)
        seen = np.logical_or.reduceat(self.seen[self._source.slots.tick[used]][:, ranks], places, axis=0)
        tick, core = np.nonzero(seen)
        cores = np.array(list(tile.cores.values()), np.int64)
        columns = [axis.end_us[first + tick], axis.length_us[first + tick], cores[core]]
        return Rows(schema.CORES, first + tick, [*columns, *figures[tick, core].T])

    def _without_strange_gaps(self, figures: Ints, tile: Tile, begin: int, end: int) -> Ints:
        """A gap that may have begun before the seconds that stand before it here belongs to others: a recorder that
        begins knows of none, and where a background begins again its own past is not there."""
        if tile.is_fault:
            return figures
        used = tile.slots(end)
        length_us = self._source.slots.length_us[used]
        before_us = np.cumsum(length_us) - length_us
        joints = np.flatnonzero(np.diff(used, prepend=used[0] - 1 if not tile.phase else -1) != 1)
        if not len(joints):
            return figures
        last = np.searchsorted(joints, np.arange(len(used)), "right") - 1
        since_us = np.where(last < 0, NEVER_US, before_us - before_us[joints[np.maximum(last, 0)]])[begin:, None]
        gaps = figures[:, :, _LONGEST]
        figures[:, :, _LONGEST] = np.where(gaps > since_us, NULL, gaps)
        return figures


def _fitted(figures: Ints, room: Room) -> Ints:
    """Less in a slot that is shorter; a gap is no count."""
    if (room == 1).all():
        return figures
    known = figures != NULL
    less = np.rint(np.where(known, figures, 0) * room[:, None, None]).astype(np.int64)
    less[:, :, _LONGEST] = figures[:, :, _LONGEST]
    fitted: Ints = np.where(known, less, NULL)
    return fitted


def _together(figures: Ints, places: Ints) -> Ints:
    """Slots of one tick as one: sums, but the longest of the gaps."""
    known = figures != NULL
    counted = np.where(known, figures, 0)
    sums = np.add.reduceat(counted, places, axis=0)
    sums[:, :, _LONGEST] = np.maximum.reduceat(counted[:, :, _LONGEST], places, axis=0)
    together: Ints = np.where(np.logical_or.reduceat(known, places, axis=0), sums, NULL)
    return together


class InterruptCounts:
    """Of one recording: its table `interrupts`."""

    def __init__(self, source: Source) -> None:
        rows = source.table("interrupts")
        self._time, self._series, self._cpu, self._count = (
            source.numbers(rows, name) for name in ("time", "series", "cpu", "count")
        )

    def rows(self, tile: Tile, numbers: SeriesNumbers, axis: Axis, wide: Slots, first: int, last: int) -> Rows:
        begin, end = int(wide.first[first]), int(wide.first[last]) if last < len(axis) else len(wide)
        chosen, moved = tile.spread(self._time, wide, begin, end)
        core = moved_cores(tile.cores, self._cpu[chosen])
        chosen, moved, core = chosen[core >= 0], moved[core >= 0], core[core >= 0]
        tick = axis.tick_of(moved)
        series = numbers.of(tile)[self._series[chosen]]
        room = tile.room(wide, 0, len(wide))[wide.slot_of(moved)]
        counts = np.rint(self._count[chosen] * room).astype(np.int64)
        return Rows(schema.INTERRUPTS, tick, [axis.end_us[tick], series, core, counts])


def moved_cores(cores: dict[int, int], cpus: Ints) -> Ints:
    """The core of the wide node for each; -1 where it has none."""
    place = np.full(max([*cores, int(cpus.max(initial=0))]) + 1, -1, np.int64)
    place[list(cores)] = list(cores.values())
    found: Ints = np.where(cpus >= 0, place[np.maximum(cpus, 0)], -1)
    return found
