"""Counters of a window, summed per series. A counter that did not move is 0 here, and so is one that this node does not
have, unless one asks whether it is known."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from zombiescope.store.columns import Ints

Series = tuple[str, str, str | None, str]
"""Source, name, key and kind."""


class CounterSums:
    def __init__(self, series: Mapping[int, Series], ids: Ints, values: Ints) -> None:
        added = np.zeros(max(int(ids.max(initial=-1)), max(series, default=-1)) + 1, np.int64)
        np.add.at(added, ids, values)
        self._sums: dict[tuple[str, str, str], int] = {}
        for number, (source, name, key, kind) in series.items():
            if kind == "counter":
                identity = (source, name, key or "")
                self._sums[identity] = self._sums.get(identity, 0) + int(added[number])

    def total(self, source: str, name: str, key: str = "") -> int:
        return self._sums.get((source, name, key), 0)

    def known(self, source: str, name: str, key: str = "") -> bool:
        """Whether this node counts it."""
        return (source, name, key) in self._sums

    def by_key(self, source: str) -> dict[str, dict[str, int]]:
        """Device -> name -> sum."""
        found: dict[str, dict[str, int]] = {}
        for (of, name, key), added in self._sums.items():
            if of == source:
                found.setdefault(key, {})[name] = added
        return found
