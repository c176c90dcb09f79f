"""Where each recording lies on the wide node: on which cores, and from which of its slots on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from zombiescope.lab.wide.axis import Slots
from zombiescope.lab.wide.source import Source, WidenError
from zombiescope.recording.columns import Ints

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
    """Its first slot."""

    @property
    def is_fault(self) -> bool:
        return self.number == 0

    @property
    def share(self) -> Fraction:
        """How much of the recorded machine it is; node-wide counts are multiplied by it."""
        return Fraction(len(self.cores), len(self.source.cpus))

    def slots(self, count: int) -> Ints:
        """The slot of the recording that is in each of the first slots of the wide node."""
        return (np.arange(count) + self.phase) % len(self.source.slots)

    def spread(self, times: Ints, wide: Slots, first: int, last: int) -> tuple[Ints, Ints]:
        """Of rows in the order of time: which of them are in some slots of the wide node, and when."""
        own, used = self.source.slots, self.slots(last)[first:]
        begin = np.searchsorted(times, own.start_us, "right")[used]
        counts = np.searchsorted(times, own.end_us, "right")[used] - begin
        rows = np.repeat(begin - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        slot = np.repeat(np.arange(len(used)), counts)
        length = np.maximum(own.end_us - own.start_us, 1)[used][slot]
        room = (wide.end_us - wide.start_us)[first:last][slot]
        moved = wide.start_us[first:last][slot] + (times[rows] - own.start_us[used][slot]) * room // length
        return rows, moved

    def scaled(self, counts: Ints) -> Ints:
        """Counts by slot [slot, ...] as far as they are this tile's, without losing any to rounding."""
        above, below = self.share.numerator, self.share.denominator
        if above == below:
            return counts
        sums = np.cumsum(counts, axis=0) * above // below
        return np.diff(sums, axis=0, prepend=np.zeros_like(sums[:1]))

    def level(self, levels: Ints) -> Ints:
        return levels * self.share.numerator // self.share.denominator


def lay_out(fault: Source, backgrounds: Sequence[Source], width: int, at: int | None) -> list[Tile]:
    """The fault's cores from `at` on, the backgrounds in turn on all others. Raises WidenError."""
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
        phase = int(copies[turn] * _GOLDEN * len(source.slots)) % len(source.slots)
        copies[turn] += 1
        tiles.append(Tile(len(tiles), source, dict(zip(source.cpus, taken, strict=False)), phase))
    return tiles
