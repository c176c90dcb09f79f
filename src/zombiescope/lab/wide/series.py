"""One number on the wide node for what the tiles count under the same name."""

from __future__ import annotations

import numpy as np

from zombiescope.lab.wide.source import Source
from zombiescope.lab.wide.tile import Tile
from zombiescope.store.columns import Ints

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
