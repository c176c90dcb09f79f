"""What counters, interrupts and gauges said in a window of a recording: the part of the facts that is about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from zombiescope.base.time import HOUR_US, SECOND_US
from zombiescope.diagnosis.dictionaries import Dictionaries, SeriesName
from zombiescope.diagnosis.thresholds import COUNTER_LATE_US
from zombiescope.query.node_counters import CounterSums, last_by_key, last_value
from zombiescope.store import columns
from zombiescope.store.reader import Recording

Kept = TypeVar("Kept")
Three = tuple[columns.Ints, columns.Ints, columns.Ints]
"""Time, series and value."""


@dataclass(frozen=True, slots=True)
class Count:
    """How much a counter rose between the two readings that enclose a span, and how far apart those are."""

    added: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.added / max(self.seconds, 1e-6)


class CounterFacts:
    """A window of a recording, what was read of it so far, and its counters."""

    def __init__(self, recording: Recording, start_us: int, end_us: int, always: dict[object, Any] | None) -> None:
        """`always`: what facts of another window of the same recording know already."""
        self.recording = recording
        self._kept: dict[object, Any] = {}
        self._always: dict[object, Any] = {} if always is None else always
        # Whole seconds, so that the same incident begins at the same moment whatever window it is looked at through.
        self.start_us = max(start_us, recording.start_us) // SECOND_US * SECOND_US
        self.end_us = max(self.start_us + 1, min(end_us, recording.end_us + 1))

    def _keep(self, what: object, read: Callable[[], Kept]) -> Kept:
        if what not in self._kept:
            self._kept[what] = read()
        kept: Kept = self._kept[what]
        return kept

    def always(self, what: object, read: Callable[[], Kept]) -> Kept:
        """Kept for every window of this recording."""
        if what not in self._always:
            self._always[what] = read()
        kept: Kept = self._always[what]
        return kept

    def forget(self) -> None:
        """Lets go of what was read for this window; it is read again if it is asked for."""
        self._kept.clear()

    @property
    def dictionaries(self) -> Dictionaries:
        return self.always("dictionaries", lambda: Dictionaries(self.recording))

    @property
    def _series(self) -> dict[int, SeriesName]:
        return self._keep("series", lambda: self.dictionaries.series(self.start_us, self.end_us + COUNTER_LATE_US))

    def _numbers(self, source: str, name: str | None = None, key: str | None = None) -> list[int]:
        """The series of a source; of one name, and of one key, where these are given."""

        def listed() -> dict[tuple[str, str | None], list[int]]:
            found: dict[tuple[str, str | None], list[int]] = {}
            for number, known in self._series.items():
                found.setdefault(known[:2], []).append(number)
                found.setdefault((known[0], None), []).append(number)
            return found

        found = self._keep("numbers", listed).get((source, name), [])
        return found if key is None else [number for number in found if self._series[number][2] == key]

    @property
    def _counters(self) -> Three:
        def read() -> Three:
            time, series, value = self._levels
            end = np.searchsorted(time, self.end_us)
            return time[:end], series[:end], value[:end]

        return self._keep("counters", read)

    def _moments(self, source: str) -> columns.Ints:
        """When a source of counters was read in the window and anything of it had moved."""

        def read() -> columns.Ints:
            time, series, _ = self._counters
            return np.unique(time[np.isin(series, self._numbers(source))])

        return self._keep(("moments", source), read)

    @property
    def _interrupts(self) -> Three:
        return self._keep("interrupts", lambda: self._rows("interrupts", ("time", "series", "count"), self.end_us))

    @property
    def _interrupt_moments(self) -> columns.Ints:
        return self._keep("interrupt moments", lambda: np.unique(self._interrupts[0]))

    @property
    def _levels(self) -> Three:
        """Counters, and those a little beyond the window."""
        return self._keep(
            "levels", lambda: self._rows("counters", ("time", "series", "value"), self.end_us + COUNTER_LATE_US)
        )

    def _rows(self, table: str, names: tuple[str, str, str], end_us: int) -> Three:
        rows = self.recording.table(table, self.start_us, end_us, names)
        first, second, third = (columns.numbers(rows.column(name)) for name in names)
        return first, second, third

    @property
    def sums(self) -> CounterSums:
        """What each counter added in the window."""
        return self._keep("sums", lambda: CounterSums(self._series, *self._counters[1:]))

    def added(self, source: str, name: str, *, from_us: int | None = None, to_us: int | None = None) -> int | None:
        """How much a counter rose, all keys together. 0 where it is known and did not move; None where this node does
        not count it."""
        ids = self._numbers(source, name)
        if not ids:
            return None
        time, series, value = self._counters
        chosen = np.isin(series, ids)
        if from_us is not None:
            chosen &= time > from_us
        if to_us is not None:
            chosen &= time <= to_us
        return int(value[chosen].sum())

    def count(self, source: str, name: str, from_us: int, to_us: int, key: str | None = None) -> Count | None:
        """What a counter, of one key or of all together, counted in a span. None when its source was not read there.

        Counters are read at ticks, and dear ones at every tenth: the readings before and after the span count, or the
        last one where the recording ends sooner. A name that the recording does not know is one that this kernel does
        not have, and None: absent is not zero.
        """
        wanted = self._numbers(source, name, key)
        return _between(self._moments(source), self._counters, wanted, from_us, to_us) if wanted else None

    def interrupts(self, label: str, from_us: int, to_us: int) -> Count | None:
        """Interrupts of one row of /proc/interrupts (TLB, CAL, RES), all cores together. None where this machine has no
        such row, as arm64 has none for TLB."""
        ids = self._numbers("interrupts", label)
        return _between(self._interrupt_moments, self._interrupts, ids, from_us, to_us) if ids else None

    def interrupts_of_cores(self, label: str) -> tuple[columns.Ints, columns.Ints, columns.Ints]:
        """When /proc/interrupts was read in the window, which cores one of its rows counted anything for, and [core,
        reading] what it had counted since the last time."""
        ids = self._numbers("interrupts", label)
        rows = self.recording.table("interrupts", self.start_us, self.end_us, ("time", "series", "cpu", "count"))
        time, series, cpu, value = (columns.numbers(rows.column(name)) for name in rows.column_names)
        readings, place = np.unique(time, return_inverse=True)
        mine = np.isin(series, ids)
        cpus, row = np.unique(cpu[mine], return_inverse=True)
        counts = np.zeros((len(cpus), len(readings)), np.int64)
        np.add.at(counts, (row, place[mine]), value[mine])
        return readings, cpus, counts

    def moments(self, source: str) -> columns.Ints:
        """When a source of counters was read in the window."""
        return self._moments(source)

    def readings(self, source: str) -> dict[tuple[str, str], tuple[columns.Ints, columns.Ints]]:
        """(name, key) of what moved in the window -> when, and by how much or to what."""
        time, series, value = self._counters
        mine = {number: (self._series[number][1], self._series[number][2] or "") for number in self._numbers(source)}
        inside = np.flatnonzero(np.isin(series, list(mine)))
        by_series = inside[np.argsort(series[inside], kind="stable")]
        numbers, firsts = np.unique(series[by_series], return_index=True)
        found: dict[tuple[str, str], list[columns.Ints]] = {}
        for number, rows in zip(numbers.tolist(), np.split(by_series, firsts[1:]), strict=False):
            found.setdefault(mine[number], []).append(rows)
        chosen = {identity: np.sort(np.concatenate(rows)) for identity, rows in found.items()}
        return {identity: (time[rows], value[rows]) for identity, rows in chosen.items()}

    def rates(self, source: str, name: str) -> npt.NDArray[np.float64]:
        """How fast a counter rose, all keys together, between each two readings of its source; none where this node
        does not count it."""
        time, series, value = self._counters
        wanted = self._numbers(source, name)
        return _rates(self._moments(source), time, value, np.isin(series, wanted)) if wanted else np.zeros(0)

    def interrupt_rates(self, label: str) -> npt.NDArray[np.float64]:
        """Likewise for one row of /proc/interrupts, all cores together."""
        time, series, value = self._interrupts
        ids = self._numbers("interrupts", label)
        return _rates(self._interrupt_moments, time, value, np.isin(series, ids)) if ids else np.zeros(0)

    def peak(self, source: str, name: str, from_us: int, to_us: int, *, fresh: bool = False) -> int | None:
        """The highest level of a gauge in a span, or the one before it; beyond the window where the span is.

        Levels that stand still have no row, so an old one usually holds. `fresh` is for those that never stand still:
        without a row in the span they were not read there, and what was before says nothing.
        """
        inside = self._levels_of(source, name, from_us, to_us)
        if fresh and not len(inside):
            return None
        before = self.gauge(source, name, from_us)
        return max([*inside.tolist(), *([] if before is None else [before])], default=None)

    def gauge(self, source: str, name: str, at_us: int | None = None) -> int | None:
        """The last value at or before a moment (the window's end), of whatever key."""
        at_us = self.end_us if at_us is None else at_us
        if (source, name) not in self._keep("named", self._named):
            return None
        found = self._levels_of(source, name, None, at_us)
        return int(found[-1]) if len(found) else last_value(self.recording, source, name, at_us)

    def _levels_of(self, source: str, name: str, from_us: int | None, to_us: int) -> columns.Ints:
        """Of a gauge, those of a span and of its last moment, too."""
        time, series, value = self._levels
        first = 0 if from_us is None else int(np.searchsorted(time, from_us))
        inside = slice(first, max(first, int(np.searchsorted(time, to_us, "right"))))
        levels: columns.Ints = value[inside][np.isin(series[inside], self._numbers(source, name))]
        return levels

    def gauges(self, source: str, name: str, at_us: int) -> dict[str, int]:
        """The last values by key, of the ten minutes up to a moment."""
        if (source, name) not in self._keep("named", self._named):
            return {}
        return self.always((source, name, at_us), lambda: last_by_key(self.recording, source, name, at_us))

    def _named(self) -> set[tuple[str, str]]:
        """The series of the last hour: each part of a recording says all of them again."""
        series = self.dictionaries.series(self.start_us - HOUR_US, self.end_us + COUNTER_LATE_US)
        return {known[:2] for known in series.values()}


def _rates(
    readings: columns.Ints, time: columns.Ints, value: columns.Ints, chosen: columns.Mask
) -> npt.NDArray[np.float64]:
    """The first reading only begins the first interval."""
    if len(readings) < 2:
        return np.zeros(0)
    place = np.searchsorted(readings, time[chosen])
    added = np.bincount(place, value[chosen], len(readings))
    rates: npt.NDArray[np.float64] = added[1:] / np.diff(readings) * 1e6
    return rates


def _between(readings: columns.Ints, rows: Three, wanted: list[int], from_us: int, to_us: int) -> Count | None:
    """What some series added in a span, by the moments at which their source was read; rows are in order of time."""
    time, series, value = rows
    before, after = readings[readings <= from_us], readings[readings > from_us]
    if not len(after):
        return None
    first = int(before[-1]) if len(before) and from_us - before[-1] <= COUNTER_LATE_US else from_us
    later = after[after >= to_us]
    last = int(later[0]) if len(later) else int(after[-1])
    if last - to_us > COUNTER_LATE_US:
        return None
    inside = slice(*np.searchsorted(time, [first, last], "right").tolist())
    return Count(int(value[inside][np.isin(series[inside], wanted)].sum()), (last - first) / 1e6)
