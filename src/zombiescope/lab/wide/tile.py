"""Where each recording lies on the wide node: on which cores, and from which of its slots on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from zombiescope.lab.wide.axis import LIKE, Slots
from zombiescope.lab.wide.source import Source, WidenError
from zombiescope.store.columns import Ints

Room = npt.NDArray[np.float64]

_GOLDEN = 0.618034
"""The fractional parts of its multiples lie as far from each other as they can: no two copies do the same at once."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Some cores of a recording on cores of the wide node. Number 0 is the fault, which is where it was in time."""

    number: int
    source: Source
    cores: dict[int, int]
    """Core of the recording -> core of the wide node."""
    phase: int
    """Which of its whole slots is the first."""

    @property
    def is_fault(self) -> bool:
        return self.number == 0

    @property
    def share(self) -> Fraction:
        """How much of the recorded machine it is; node-wide counts are multiplied by it."""
        return Fraction(len(self.cores), len(self.source.cpus))

    def slots(self, count: int) -> Ints:
        """The slot of the recording that is in each of the first slots of the wide node."""
        if self.is_fault:
            return np.arange(count)
        whole = self.source.whole_slots
        used: Ints = whole[(np.arange(count) + self.phase) % len(whole)]
        return used

    @property
    def start_us(self) -> int:
        """When its first slot was recorded."""
        return int(self.source.slots.start_us[self.slots(1)[0]])

    def room(self, wide: Slots, first: int, last: int) -> Room:
        """How much of its slots there is room for: 1 where they are alike."""
        ratio = wide.length_us[first:last] / self.source.slots.length_us[self.slots(last)[first:]]
        rounded: Room = np.where(np.abs(ratio - 1) <= LIKE, 1.0, ratio)
        return rounded

    def spread(self, times: Ints, wide: Slots, first: int, last: int) -> tuple[Ints, Ints]:
        """Of rows in the order of time: which of them are in some slots of the wide node, and when."""
        own, used = self.source.slots, self.slots(last)[first:]
        length = (own.length_us[used] * np.minimum(self.room(wide, first, last), 1.0)).astype(np.int64)
        start = own.end_us[used] - length  # of a slot that is too long, the end
        begin = np.searchsorted(times, start, "right")
        counts = np.searchsorted(times, own.end_us[used], "right") - begin
        rows = np.repeat(begin - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        slot = np.repeat(np.arange(len(used)), counts)
        since = (times[rows] - start[slot]) * wide.length_us[first:last][slot] // length[slot]
        return rows, wide.start_us[first:last][slot] + since

    def fitted(self, counts: Ints, wide: Slots) -> Ints:
        """Counts in each of the first slots of the wide node: less where there is room for less."""
        room = self.room(wide, 0, len(counts))
        return counts if (room == 1).all() else np.rint(counts * room).astype(np.int64)

    def scaled(self, counts: Ints) -> Ints:
        """Counts by slot [slot, ...] as far as they are this tile's, without losing any to rounding."""
        above, below = self.share.numerator, self.share.denominator
        if above == below:
            return counts
        sums = np.cumsum(counts, axis=0) * above // below
        return np.diff(sums, axis=0, prepend=np.zeros_like(sums[:1]))

    def level(self, levels: Ints) -> Ints:
        return levels * self.share.numerator // self.share.denominator


def lay_out(
    fault: Source, backgrounds: Sequence[Source], width: int, at: int | None, apart_s: float | None = None
) -> list[Tile]:
    """The fault's cores from `at` on, the backgrounds in turn on all others; copies of one begin at most `apart_s` from
    each other. Raises WidenError."""
    own = len(fault.cpus)
    begin = min(width * 2 // 5, width - own) if at is None else at
    if begin < 0 or begin + own > width:
        raise WidenError(f"{own} cores of the fault do not fit into {width} from core {begin} on")
    free = [core for core in range(width) if not begin <= core < begin + own]
    if free and not backgrounds:
        raise WidenError(f"{len(free)} cores have nothing to do", "name a healthy recording with --onto")
    tiles = [Tile(0, fault, {cpu: begin + rank for rank, cpu in enumerate(fault.cpus)}, 0)]
    copies = dict.fromkeys(range(len(backgrounds)), 0)
    while free:
        turn = (len(tiles) - 1) % len(backgrounds)
        source = backgrounds[turn]
        taken, free = free[: len(source.cpus)], free[len(source.cpus) :]
        phase = _phase(source, copies[turn], apart_s)
        copies[turn] += 1
        tiles.append(Tile(len(tiles), source, dict(zip(source.cpus, taken, strict=False)), phase))
    return tiles


def _phase(source: Source, copy: int, apart_s: float | None) -> int:
    slots = len(source.whole_slots)
    if apart_s is not None:
        slots = min(slots, 1 + round(apart_s * 1e6 / source.interval_us))
    return int(copy * _GOLDEN * slots) % slots


# --- series -----------------------------------------------------------------------------------------------------------
# One number on the wide node for what the tiles count under the same name.

Name = tuple[str, str, str | None, str]
"""Source, name, key and kind."""
IRQS_OF_A_TILE = 1000
"""Each tile has devices of its own, and their interrupts numbers of their own."""


class SeriesNumbers:
    def __init__(self) -> None:
        self._numbers: dict[Name, int] = {}
        self._of: dict[int, Ints] = {}

    def number(self, name: Name) -> int:
        return self._numbers.setdefault(name, len(self._numbers) + 1)

    def of(self, tile: Tile) -> Ints:
        """Number of the recording -> number of the wide node."""
        if tile.number not in self._of:
            names = names_of(tile.source)
            numbers = np.zeros(max(names, default=0) + 1, np.int64)
            for old, name in names.items():
                numbers[old] = self.number(_own(name, tile.number))
            self._of[tile.number] = numbers
        return self._of[tile.number]

    def rows(self) -> list[tuple[int, str, str, str | None, str]]:
        return [(number, *name) for name, number in self._numbers.items()]


def names_of(source: Source) -> dict[int, Name]:
    rows = source.rows("series")
    return {row["series"]: (row["source"], row["name"], row["key"], row["kind"]) for row in rows}


def irq_of(irq: int, tile: int) -> int:
    return irq + IRQS_OF_A_TILE * tile


def _own(name: Name, tile: int) -> Name:
    source, label, key, kind = name
    if source != "interrupts" or not label.isdecimal():
        return name
    return source, str(irq_of(int(label), tile)), key, kind
