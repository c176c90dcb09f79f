"""What each disk did, tick by tick, and when one had requests and completed none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from zombiescope.store import columns
from zombiescope.store.columns import Ints
from zombiescope.store.reader import Recording

_NUMBERS = ("time", "interval_us", "in_flight", "reads", "writes", "others", "read_bytes", "written_bytes", "busy_ms")


@dataclass(frozen=True, slots=True)
class Stall:
    from_us: int
    to_us: int
    in_flight: int

    @property
    def seconds(self) -> float:
        return (self.to_us - self.from_us) / 1e6


@dataclass(frozen=True, slots=True)
class DiskHistory:
    """Ticks in which the disk did something, or had something to do; in the others there is no row."""

    time: Ints
    interval_us: Ints
    in_flight: Ints
    completed: Ints
    written_bytes: Ints
    busy_ms: Ints

    def stalls(self, least_s: float) -> Iterator[Stall]:
        """Spans of that length or more in which requests were in flight and none was completed."""
        stands = (self.in_flight > 0) & (self.completed == 0)
        begins = self.time - self.interval_us
        first: int | None = None
        for row in range(len(self.time) + 1):
            inside = row < len(self.time) and bool(stands[row])
            apart = first is not None and inside and begins[row] > self.time[row - 1] + self.interval_us[row]
            if first is not None and (not inside or apart):
                stall = Stall(int(begins[first]), int(self.time[row - 1]), int(self.in_flight[first:row].max()))
                if stall.seconds >= least_s:
                    yield stall
                first = None
            if inside and first is None:
                first = row

    def completed_between(self, from_us: int, to_us: int) -> int:
        return int(self.completed[self._inside(from_us, to_us)].sum())

    def written_per_s(self, from_us: int, to_us: int) -> float:
        return float(self.written_bytes[self._inside(from_us, to_us)].sum()) / max((to_us - from_us) / 1e6, 1e-6)

    def most_in_flight(self, from_us: int, to_us: int) -> int:
        inside = self.in_flight[self._inside(from_us, to_us)]
        return int(inside.max()) if len(inside) else 0

    def _inside(self, from_us: int, to_us: int) -> columns.Mask:
        """Ticks that lie in the span as a whole: what was completed in the second in which it began came before it."""
        inside: columns.Mask = (self.time - self.interval_us >= from_us) & (self.time <= to_us)
        return inside


def disks(recording: Recording, start_us: int, end_us: int) -> dict[str, DiskHistory]:
    """By name."""
    rows = recording.table("disks", start_us, end_us)
    names = np.array([name or "" for name in columns.texts(rows.column("device"))], dtype=object)
    known = {name: columns.numbers(rows.column(name)) for name in _NUMBERS}
    found = {}
    for name in sorted(set(names.tolist())):
        mine = np.flatnonzero(names == name)
        part = {column: values[mine] for column, values in known.items()}
        completed = part["reads"] + part["writes"] + part["others"]
        found[name] = DiskHistory(
            part["time"], part["interval_us"], part["in_flight"], completed, part["written_bytes"], part["busy_ms"]
        )
    return found
