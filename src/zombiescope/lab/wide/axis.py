"""The ticks of a recording, cut into slots of one interval: what one recording fills of another's time.

A tick ends at a moment and lasted a while, usually the recorder's interval. One that came late covers several slots;
its counts are divided among them. So a slot of any recording fits a slot of any other, and rates survive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zombiescope.store import columns
from zombiescope.store.columns import Ints
from zombiescope.store.reader import Recording

NULL = np.iinfo(np.int64).min
"""Stands for "not measured" in arrays of numbers."""
LIKE = 0.1
"""Slots whose lengths differ by no more than this are alike: what was counted in one is put into the other as it is."""


@dataclass(frozen=True, slots=True)
class Axis:
    """When the ticks ended, and how long each was."""

    end_us: Ints
    length_us: Ints

    def __len__(self) -> int:
        return len(self.end_us)

    def tick_of(self, times: Ints) -> Ints:
        """The tick in which each moment lies; the first or the last for what lies outside."""
        return np.minimum(np.searchsorted(self.end_us, times, "left"), len(self) - 1).astype(np.int64)


def axis_of(recording: Recording) -> Axis:
    rows = recording.table("cores", columns=("time", "interval_us"))
    times, first = np.unique(columns.numbers(rows.column("time")), return_index=True)
    return Axis(times, columns.numbers(rows.column("interval_us"))[first])


@dataclass(frozen=True, slots=True)
class Slots:
    start_us: Ints
    end_us: Ints
    tick: Ints
    """Of which tick it is a piece."""
    piece: Ints
    pieces: Ints
    """Which of how many."""
    first: Ints
    """The first slot of each tick."""

    def __len__(self) -> int:
        return len(self.tick)

    def shared(self, counts: Ints) -> Ints:
        """Counts by tick [tick, ...] as counts by slot: a late tick's are divided."""
        more = (1,) * (counts.ndim - 1)
        whole, piece, pieces = counts[self.tick], self.piece.reshape(-1, *more), self.pieces.reshape(-1, *more)
        known = np.where(whole == NULL, 0, whole)
        return np.where(whole == NULL, NULL, known * (piece + 1) // pieces - known * piece // pieces)

    @property
    def length_us(self) -> Ints:
        length: Ints = np.maximum(self.end_us - self.start_us, 1)
        return length

    def whole(self, interval_us: int) -> Ints:
        """Those that last about an interval; all, where none does. A recorder's first and last ticks are short."""
        found = np.flatnonzero(np.abs(self.length_us - interval_us) <= LIKE * interval_us)
        return found if len(found) else np.arange(len(self))

    def slot_of(self, times: Ints) -> Ints:
        return np.minimum(np.searchsorted(self.end_us, times, "left"), len(self) - 1).astype(np.int64)


def slots(axis: Axis, interval_us: int) -> Slots:
    pieces = np.maximum(1, np.rint(axis.length_us / interval_us)).astype(np.int64)
    first = np.cumsum(pieces) - pieces
    tick = np.repeat(np.arange(len(axis)), pieces)
    piece = np.arange(len(tick)) - first[tick]
    begin, length = (axis.end_us - axis.length_us)[tick], axis.length_us[tick]
    start = begin + length * piece // pieces[tick]
    end = begin + length * (piece + 1) // pieces[tick]
    return Slots(start, end, tick, piece, pieces[tick], first)


def level_by_slot(of: Slots, times: Ints, values: Ints) -> Ints:
    """A level as it is in each slot: the last that was read in or before it, the first one where none was."""
    if not len(times):
        return np.full(len(of), NULL)
    last = np.searchsorted(times, of.end_us, "right") - 1
    levels: Ints = values[np.maximum(last, 0)]
    return levels


def added_by_slot(of: Slots, times: Ints, sums: Ints) -> Ints:
    """What a number that only grows grew by in each slot."""
    added = np.zeros(len(of), np.int64)
    if len(times) > 1:
        np.add.at(added, of.slot_of(times[1:]), np.maximum(np.diff(sums), 0))
    return added
