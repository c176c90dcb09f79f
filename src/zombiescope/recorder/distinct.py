"""How many different texts there were, in little memory: exact up to EXACT of them, then an estimate.

Of the first few the hashes are kept. After that a bit of BITS is set for each, and how many bits are still free tells
how many there were (linear counting): 2 kB, about 1% off at ten thousand and 3% at a hundred thousand."""

from __future__ import annotations

from math import log

EXACT = 64
BITS = 1 << 14


class Distinct:
    __slots__ = ("_bits", "_few", "_set", "before")

    def __init__(self) -> None:
        self._few: set[int] = set()
        self._bits: bytearray | None = None
        self._set = 0
        self.before = 0
        """Counted by somebody else, earlier."""

    def add(self, text: str) -> None:
        number = hash(text)
        if self._bits is None:
            self._few.add(number)
            if len(self._few) <= EXACT:
                return
            self._bits = bytearray(BITS // 8)
            for one in self._few:
                self._mark(one)
            self._few.clear()
        self._mark(number)

    def _mark(self, number: int) -> None:
        assert self._bits is not None
        place, bit = number % BITS // 8, 1 << (number & 7)
        if not self._bits[place] & bit:
            self._bits[place] |= bit
            self._set += 1

    @property
    def count(self) -> int:
        if self._bits is None:
            return self.before + len(self._few)
        free = max(1, BITS - self._set)
        return self.before + round(BITS * log(BITS / free))
