"""What was measured in a window: the only way in which detectors and patterns look at a recording.

Everything is read when it is first asked for and kept, what does not depend on the window even for other windows of the
same recording. A number that was not measured is None, and a pattern that
needs it can neither be confirmed nor ruled out by it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from zombiescope._time import HOUR_US, SECOND_US
from zombiescope.diagnosis import core_grid, sample_grid
from zombiescope.diagnosis.core_grid import CoreGrid
from zombiescope.diagnosis.dictionaries import Dictionaries, SeriesName
from zombiescope.diagnosis.sample_grid import SampleGrid
from zombiescope.kernel.cpu import parse_list
from zombiescope.kernel.release import kernel_version
from zombiescope.recording import columns
from zombiescope.recording.core_lists import ISOLATED, LEFT_OUT, listed
from zombiescope.recording.event import Event
from zombiescope.recording.gaps import Gap
from zombiescope.recording.reader import Recording
from zombiescope.views.cgroups import CgroupHistory, CgroupsView
from zombiescope.views.containers import Container, containers
from zombiescope.views.counter_sums import CounterSums
from zombiescope.views.events import events
from zombiescope.views.series import last_by_key, last_value

Kept = TypeVar("Kept")
Three = tuple[columns.Ints, columns.Ints, columns.Ints]
"""Time, series and value."""

LATE_US = 15 * SECOND_US
"""A dear source is read every ten seconds; a reading that comes later than this says nothing about a span."""

LEAST_PAST_US = 2 * SECOND_US
"""Less of an earlier time says nothing about it."""


@dataclass(frozen=True, slots=True)
class Count:
    """How much a counter rose between the two readings that enclose a span, and how far apart those are."""

    added: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.added / max(self.seconds, 1e-6)


class Facts:
    """One window of one recording."""

    def __init__(self, recording: Recording, start_us: int, end_us: int, beside: Facts | None = None) -> None:
        """`beside`: facts of another window of the same recording, which may know some of it already."""
        self.recording = recording
        self._kept: dict[object, Any] = {}
        self._always: dict[object, Any] = {} if beside is None else beside._always
        self._only: tuple[int, int] | None = None
        # Whole seconds, so that the same incident begins at the same moment whatever window it is looked at through.
        self.start_us = max(start_us, recording.start_us) // SECOND_US * SECOND_US
        self.end_us = max(self.start_us + 1, min(end_us, recording.end_us + 1))
        self._asked_us = min(max(start_us, self.start_us), self.end_us - 1)

    def during(self, from_us: int, to_us: int) -> Facts:
        """The same facts, but of the samples only those of a span: most questions are about one incident."""
        narrow = copy(self)
        narrow._only = (from_us, to_us)
        return narrow

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
    def node(self) -> dict[str, Any]:
        return self.recording.node

    @property
    def seconds(self) -> float:
        """Without the part of the first second that was not asked for."""
        return (self.end_us - self._asked_us) / 1e6

    @property
    def kernel(self) -> tuple[int, int] | None:
        """(5, 4); None when the recording does not say."""
        return kernel_version(self.node.get("kernel"))

    @property
    def hz(self) -> float:
        """Samples a second of a busy core."""
        return self._recorded_hz or self._all_samples.hz

    @property
    def _recorded_hz(self) -> float | None:
        hz = self.node.get("hz")
        return float(hz) if isinstance(hz, int | float) and hz > 0 else None

    @property
    def imported(self) -> bool:
        return isinstance(self.node.get("imported"), dict)

    # --- cores and samples -------------------------------------------------------------------------------------------

    @property
    def cores(self) -> CoreGrid | None:
        return self._keep("cores", lambda: core_grid.load(self.recording, self.start_us, self.end_us))

    @property
    def samples(self) -> SampleGrid:
        if self._only is None:
            return self._all_samples
        return self._keep(("samples", self._only), lambda: self._all_samples.between(*(self._only or (0, 0))))

    @property
    def _all_samples(self) -> SampleGrid:
        def read() -> SampleGrid:
            span = (self.start_us, self.end_us)
            return sample_grid.load(self.recording, *span, self._recorded_hz, self.dictionaries)

        return self._keep("samples", read)

    @property
    def dictionaries(self) -> Dictionaries:
        return self.always("dictionaries", lambda: Dictionaries(self.recording))

    def samples_between(self, from_us: int, to_us: int) -> SampleGrid:
        """Of any part of the window, whatever incident these facts are about."""
        return self._all_samples.between(from_us, to_us)

    def before(self, at_us: int, long_us: int) -> Facts | None:
        """The time before a moment of the window, whether it is part of the window or not; None where less than two
        seconds of it were recorded. Kept with the window."""
        from_us = max(at_us - long_us, self.recording.start_us)
        if at_us - from_us < LEAST_PAST_US:
            return None
        return self._keep(("before", from_us, at_us), lambda: Facts(self.recording, from_us, at_us, self))

    @property
    def is_sampled(self) -> bool:
        """Whether any stack was kept in the window."""
        return len(self._all_samples) > 0

    @property
    def cpus(self) -> int:
        if self.cores is not None:
            return len(self.cores.cpus)
        cpu = self._all_samples.cpu
        return self._keep("cpus", lambda: len(np.unique(cpu[cpu >= 0])) or 1)

    @property
    def isolated(self) -> frozenset[int]:
        """Cores that the scheduler gives nobody who does not ask for them (isolcpus)."""
        return listed(self.node, ISOLATED)

    @property
    def left_out(self) -> frozenset[int]:
        """Cores that are not sampled because somebody asked for that: what is not seen there is no symptom."""
        return listed(self.node, LEFT_OUT)

    # --- events, gaps ------------------------------------------------------------------------------------------------

    @property
    def events(self) -> list[Event]:
        return self._keep("events", lambda: events(self.recording, self.start_us, self.end_us))

    @property
    def gaps(self) -> list[Gap]:
        return self._keep("gaps", lambda: self.recording.gaps(self.start_us, self.end_us))

    # --- counters ----------------------------------------------------------------------------------------------------

    @property
    def _series(self) -> dict[int, SeriesName]:
        return self._keep("series", lambda: self.dictionaries.series(self.start_us, self.end_us + LATE_US))

    @property
    def _counters(self) -> Three:
        return self._keep("counters", lambda: self._rows("counters", ("time", "series", "value"), self.end_us))

    @property
    def _interrupts(self) -> Three:
        return self._keep("interrupts", lambda: self._rows("interrupts", ("time", "series", "count"), self.end_us))

    @property
    def _levels(self) -> Three:
        """Counters, and those a little beyond the window."""
        return self._keep("levels", lambda: self._rows("counters", ("time", "series", "value"), self.end_us + LATE_US))

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
        ids = [number for number, known in self._series.items() if known[:2] == (source, name)]
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
        time, series, value = self._counters
        mine = {number: known for number, known in self._series.items() if known[0] == source}
        wanted = [number for number, known in mine.items() if known[1] == name and key in (None, known[2])]
        if not wanted:
            return None
        return _between(time, value, np.isin(series, list(mine)), np.isin(series, wanted), from_us, to_us)

    def interrupts(self, label: str, from_us: int, to_us: int) -> Count | None:
        """Interrupts of one row of /proc/interrupts (TLB, CAL, RES), all cores together. None where this machine has no
        such row, as arm64 has none for TLB."""
        time, series, value = self._interrupts
        ids = [n for n, known in self._series.items() if known[:2] == ("interrupts", label)]
        if not ids:
            return None
        return _between(time, value, np.ones(len(time), bool), np.isin(series, ids), from_us, to_us)

    def interrupts_of_cores(self, label: str) -> tuple[columns.Ints, columns.Ints, columns.Ints]:
        """When /proc/interrupts was read in the window, which cores one of its rows counted anything for, and [core,
        reading] what it had counted since the last time."""
        ids = [n for n, known in self._series.items() if known[:2] == ("interrupts", label)]
        rows = self.recording.table("interrupts", self.start_us, self.end_us, ("time", "series", "cpu", "count"))
        time, series, cpu, value = (columns.numbers(rows.column(name)) for name in rows.column_names)
        readings, place = np.unique(time, return_inverse=True)
        mine = np.isin(series, ids)
        cpus, row = np.unique(cpu[mine], return_inverse=True)
        counts = np.zeros((len(cpus), len(readings)), np.int64)
        np.add.at(counts, (row, place[mine]), value[mine])
        return readings, cpus, counts

    def rates(self, source: str, name: str) -> npt.NDArray[np.float64]:
        """How fast a counter rose, all keys together, between each two readings of its source; none where this node
        does not count it."""
        time, series, value = self._counters
        mine = [number for number, known in self._series.items() if known[0] == source]
        wanted = [number for number in mine if self._series[number][1] == name]
        return _rates(time[np.isin(series, mine)], time, value, np.isin(series, wanted)) if wanted else np.zeros(0)

    def interrupt_rates(self, label: str) -> npt.NDArray[np.float64]:
        """Likewise for one row of /proc/interrupts, all cores together."""
        time, series, value = self._interrupts
        ids = [number for number, known in self._series.items() if known[:2] == ("interrupts", label)]
        return _rates(time, time, value, np.isin(series, ids)) if ids else np.zeros(0)

    def peak(self, source: str, name: str, from_us: int, to_us: int, *, fresh: bool = False) -> int | None:
        """The highest level of a gauge in a span, or the one before it; beyond the window where the span is.

        Levels that stand still have no row, so an old one usually holds. `fresh` is for those that never stand still:
        without a row in the span they were not read there, and what was before says nothing.
        """
        time, series, value = self._levels
        ids = [number for number, known in self._series.items() if known[:2] == (source, name)]
        inside = value[np.isin(series, ids) & (time >= from_us) & (time <= to_us)]
        if fresh and not len(inside):
            return None
        before = self.gauge(source, name, from_us)
        return max([*inside.tolist(), *([] if before is None else [before])], default=None)

    def gauge(self, source: str, name: str, at_us: int | None = None) -> int | None:
        """The last value at or before a moment (the window's end), of whatever key."""
        at_us = self.end_us if at_us is None else at_us
        if (source, name) not in self._keep("named", self._named):
            return None
        ids = [number for number, known in self._series.items() if known[:2] == (source, name)]
        time, series, value = self._levels
        found = np.flatnonzero(np.isin(series, ids) & (time <= at_us))
        return int(value[found[-1]]) if len(found) else last_value(self.recording, source, name, at_us)

    def gauges(self, source: str, name: str, at_us: int) -> dict[str, int]:
        """The last values by key, of the ten minutes up to a moment."""
        if (source, name) not in self._keep("named", self._named):
            return {}
        return self.always((source, name, at_us), lambda: last_by_key(self.recording, source, name, at_us))

    def _named(self) -> set[tuple[str, str]]:
        """The series of the last hour: each part of a recording says all of them again."""
        series = self.dictionaries.series(self.start_us - HOUR_US, self.end_us + LATE_US)
        return {known[:2] for known in series.values()}

    # --- cgroups -----------------------------------------------------------------------------------------------------

    @property
    def cgroups(self) -> CgroupsView:
        return self.cgroups_at(self.end_us)

    def cgroups_at(self, at_us: int) -> CgroupsView:
        """Counted and charged in the hour up to a moment; each part of a recording says every charge again."""
        return self.always(("cgroups", at_us, self.start_us), lambda: self._cgroups.at(at_us))

    @property
    def counts_cgroups(self) -> bool:
        """Whether memory cgroups were counted in the hour up to the window's end."""
        return self._cgroups.is_counted(self.end_us)

    def most_cgroups_us(self, from_us: int, to_us: int) -> int | None:
        """When there were most of them in a span."""
        return self._cgroups.most_us(from_us, to_us)

    @property
    def _cgroups(self) -> CgroupHistory:
        return self._keep(
            "cgroups",
            lambda: CgroupHistory(self.recording, self.start_us - HOUR_US, self.end_us + LATE_US, self.start_us),
        )

    @property
    def recent_containers(self) -> dict[str, Container]:
        """By id, those of the hour before the window and of the window itself."""
        return self._keep(
            "recent containers", lambda: containers(self.recording, self.start_us - HOUR_US, self.end_us + LATE_US)
        )

    def cgroup_rates(self, from_us: int, to_us: int) -> tuple[Count, Count] | None:
        """Memory cgroups made and removed in a span. None where they were not counted, or by two recorders."""
        time, created, removed = self._ledger
        inside = np.flatnonzero((time >= from_us - SECOND_US) & (time <= to_us + SECOND_US))
        if len(inside) < 2:
            return None
        first, last = int(inside[0]), int(inside[-1])
        seconds = float(time[last] - time[first]) / 1e6
        made, gone = int(created[last] - created[first]), int(removed[last] - removed[first])
        return None if made < 0 or gone < 0 else (Count(made, seconds), Count(gone, seconds))

    @property
    def _ledger(self) -> Three:
        """Time, and how many memory cgroups were made and removed by then."""

        def read() -> Three:
            rows = self.recording.table("census", self.start_us, self.end_us + LATE_US, ("time", "created", "removed"))
            rows = columns.take(rows, np.flatnonzero(columns.present(rows.column("created"))))
            return tuple(columns.numbers(rows.column(name)) for name in ("time", "created", "removed"))  # type: ignore[return-value]

        return self._keep("ledger", read)

    def cgroup_churn_rates(self) -> npt.NDArray[np.float64]:
        """Memory cgroups that were made and removed, a second, in up to ten parts of the window."""
        part_us = max(SECOND_US, (self.end_us - self.start_us) // 10)
        parts = (self.cgroup_rates(at, at + part_us) for at in range(self.start_us, self.end_us - part_us + 1, part_us))
        return np.array([min(made.rate, gone.rate) for made, gone in filter(None, parts)])

    @property
    def containers(self) -> dict[str, Container]:
        """Those that were there in the window or ended in it, by id."""
        return self._keep("containers", lambda: containers(self.recording, self.start_us, self.end_us))

    @property
    def cgroup_stats(self) -> list[dict[str, Any]]:
        def read() -> list[dict[str, Any]]:
            return columns.records(self.recording.table("cgroup_stats", self.start_us, self.end_us + 11 * SECOND_US))

        return self._keep("cgroup_stats", read)

    @property
    def queues(self) -> list[dict[str, Any]]:
        """Which cores serve a NIC queue, as it was at the end of the window."""

        def read() -> list[dict[str, Any]]:
            rows = columns.records(self.recording.table("queues", self.start_us - HOUR_US, self.end_us))
            return list({(row["nic"], row["queue"], row["irq"]): row for row in rows}.values())

        return self._keep("queues", read)

    def served_by(self, nic: str | None) -> frozenset[int] | None:
        """The cores that served a card at some time of the last hour, because irqbalance moves queues; of the only card
        where none is named. None where that was not recorded."""

        def read() -> dict[str, set[int]]:
            served: dict[str, set[int]] = {}
            for row in columns.records(self.recording.table("queues", self.start_us - HOUR_US, self.end_us)):
                served.setdefault(str(row["nic"]), set()).update(parse_list(str(row["cpus"] or "").encode()))
            return served

        served = self._keep("served_by", read)
        if nic is None and len(served) == 1:
            nic = next(iter(served))
        return frozenset(served.get(nic or "", ())) or None

    # --- what cannot be known ----------------------------------------------------------------------------------------

    @property
    def missing(self) -> list[dict[str, Any]]:
        listed = self.node.get("missing")
        return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []

    def lacks(self, source: str) -> bool:
        """Whether a source was missing, so that nothing of it means nothing."""
        return any(entry.get("source") == source for entry in self.missing)


def _rates(
    read: columns.Ints, time: columns.Ints, value: columns.Ints, chosen: columns.Mask
) -> npt.NDArray[np.float64]:
    """The first reading only begins the first interval."""
    readings = np.unique(read)
    if len(readings) < 2:
        return np.zeros(0)
    place = np.searchsorted(readings, time[chosen])
    added = np.bincount(place, value[chosen], len(readings))
    rates: npt.NDArray[np.float64] = added[1:] / np.diff(readings) * 1e6
    return rates


def _between(
    time: columns.Ints, value: columns.Ints, mine: columns.Mask, chosen: columns.Mask, from_us: int, to_us: int
) -> Count | None:
    readings = np.unique(time[mine])
    before, after = readings[readings <= from_us], readings[readings > from_us]
    if not len(after):
        return None
    first = int(before[-1]) if len(before) and from_us - before[-1] <= LATE_US else from_us
    later = after[after >= to_us]
    last = int(later[0]) if len(later) else int(after[-1])
    if last - to_us > LATE_US:
        return None
    return Count(int(value[chosen & (time > first) & (time <= last)].sum()), (last - first) / 1e6)
