"""A table that a profile refers to by position: every value once, in the order of its first use."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

Value = TypeVar("Value", bound=Hashable)


class Interner(Generic[Value]):
    def __init__(self, first: Iterable[Value] = ()) -> None:
        self._positions: dict[Value, int] = {}
        for value in first:
            self.position(value)

    def position(self, value: Value) -> int:
        return self._positions.setdefault(value, len(self._positions))

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[Value]:
        return iter(self._positions)
