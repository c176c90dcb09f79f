"""The node-wide counters of a window, summed per series. A counter that did not move has no row and is 0 here; whether
it was read at all is in the list of missing sources."""

from __future__ import annotations

import numpy as np

from zombiescope.checkup.cores import Window
from zombiescope.recording.columns import numbers, records
from zombiescope.recording.reader import Recording


class Counted:
    def __init__(self, recording: Recording, window: Window) -> None:
        series = records(recording.table("series", window.start_us, window.end_us + 1))
        rows = recording.table("counters", window.start_us + 1, window.end_us + 1, ("series", "value"))
        ids, values = numbers(rows.column("series")), numbers(rows.column("value"))
        self._sums: dict[tuple[str, str, str], int] = {}
        self.seconds = max(window.seconds, 1e-6)
        for one in series:
            if one["kind"] == "counter":
                identity = (one["source"], one["name"], one["key"] or "")
                added = int(values[np.flatnonzero(ids == one["series"])].sum())
                self._sums[identity] = self._sums.get(identity, 0) + added

    def total(self, source: str, name: str, key: str = "") -> int:
        return self._sums.get((source, name, key), 0)

    def known(self, source: str, name: str, key: str = "") -> bool:
        """Whether it moved at all."""
        return (source, name, key) in self._sums

    def per_second(self, source: str, name: str) -> float:
        return self.total(source, name) / self.seconds

    def by_key(self, source: str) -> dict[str, dict[str, int]]:
        """Device -> name -> sum."""
        found: dict[str, dict[str, int]] = {}
        for (of, name, key), added in self._sums.items():
            if of == source:
                found.setdefault(key, {})[name] = added
        return found
