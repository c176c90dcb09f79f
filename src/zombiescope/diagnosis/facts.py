"""What was measured in a window: the only way in which detectors and patterns look at a recording.

Everything is read when it is first asked for and kept. A number that was not measured is None, and a pattern that
needs it can neither be confirmed nor ruled out by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from zombiescope.diagnosis import core_grid
from zombiescope.diagnosis.core_grid import SECOND_US, CoreGrid
from zombiescope.diagnosis.sample_grid import SampleGrid
from zombiescope.recording import columns
from zombiescope.recording.cgroups import CgroupsView, cgroups
from zombiescope.recording.events import Event, events
from zombiescope.recording.gaps import Gap
from zombiescope.recording.memcg_cost import kernel_version
from zombiescope.recording.reader import Recording

LATE_US = 15 * SECOND_US
"""A dear source is read every ten seconds; a reading that comes later than this tells nothing about a span."""


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

    def __init__(self, recording: Recording, start_us: int, end_us: int) -> None:
        self.recording = recording
        # Whole seconds, so that the same incident begins at the same moment whatever window it is looked at through.
        self.start_us = max(start_us, recording.start_us) // SECOND_US * SECOND_US
        self.end_us = max(self.start_us + 1, min(end_us, recording.end_us + 1))

    @property
    def node(self) -> dict[str, Any]:
        return self.recording.node

    @property
    def seconds(self) -> float:
        return (self.end_us - self.start_us) / 1e6

    @property
    def kernel(self) -> tuple[int, int] | None:
        """(5, 4); None when the recording does not say."""
        return kernel_version(self.node.get("kernel"))

    @property
    def hz(self) -> float:
        """Samples a second of a busy core. A profile of others does not say it: then it is measured."""
        return self._recorded_hz or self.samples.hz

    @property
    def _recorded_hz(self) -> float | None:
        hz = self.node.get("hz")
        return float(hz) if isinstance(hz, int | float) and hz > 0 else None

    @property
    def imported(self) -> bool:
        return isinstance(self.node.get("imported"), dict)

    # --- cores and samples -------------------------------------------------------------------------------------------

    @cached_property
    def cores(self) -> CoreGrid | None:
        return core_grid.load(self.recording, self.start_us, self.end_us)

    @cached_property
    def samples(self) -> SampleGrid:
        return SampleGrid(self.recording, self.start_us, self.end_us, self._recorded_hz)

    @property
    def cpus(self) -> int:
        if self.cores is not None:
            return len(self.cores.cpus)
        return len(np.unique(self.samples.cpu[self.samples.cpu >= 0])) or 1

    # --- events, gaps ------------------------------------------------------------------------------------------------

    @cached_property
    def events(self) -> list[Event]:
        return events(self.recording, self.start_us, self.end_us)

    @cached_property
    def gaps(self) -> list[Gap]:
        return self.recording.gaps(self.start_us, self.end_us)

    # --- counters ----------------------------------------------------------------------------------------------------

    @cached_property
    def _series(self) -> dict[int, tuple[str, str, str | None, str]]:
        rows = columns.records(self.recording.table("series", self.start_us, self.end_us))
        return {row["series"]: (row["source"], row["name"], row["key"], row["kind"]) for row in rows}

    @cached_property
    def _counters(self) -> tuple[columns.Ints, columns.Ints, columns.Ints]:
        rows = self.recording.table("counters", self.start_us, self.end_us, ("time", "series", "value"))
        return tuple(columns.numbers(rows.column(name)) for name in ("time", "series", "value"))  # type: ignore[return-value]

    @cached_property
    def _interrupts(self) -> tuple[columns.Ints, columns.Ints, columns.Ints]:
        rows = self.recording.table("interrupts", self.start_us, self.end_us, ("time", "series", "count"))
        return tuple(columns.numbers(rows.column(name)) for name in ("time", "series", "count"))  # type: ignore[return-value]

    def has_source(self, source: str) -> bool:
        """Whether any number of this source was recorded in the window."""
        return any(known[0] == source for known in self._series.values())

    def added(self, source: str, name: str, *, from_us: int | None = None, to_us: int | None = None) -> int | None:
        """How much a counter rose, all keys together. 0 if its source was recorded and it did not move; else None."""
        ids = [number for number, known in self._series.items() if known[:2] == (source, name)]
        if not ids:
            return 0 if self.has_source(source) else None
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
        last one where the recording ends sooner. A source that was read and has no row of this name counted nothing.
        """
        time, series, value = self._counters
        mine = {number: known for number, known in self._series.items() if known[0] == source}
        wanted = [number for number, known in mine.items() if known[1] == name and key in (None, known[2])]
        return _between(time, value, np.isin(series, list(mine)), np.isin(series, wanted), from_us, to_us)

    def interrupts(self, label: str, from_us: int, to_us: int) -> Count | None:
        """Interrupts of one row of /proc/interrupts (TLB, CAL, RES), all cores together."""
        time, series, value = self._interrupts
        ids = [n for n, known in self._series.items() if known[:2] == ("interrupts", label)]
        return _between(time, value, np.ones(len(time), bool), np.isin(series, ids), from_us, to_us)

    def peak(self, source: str, name: str, from_us: int, to_us: int, *, fresh: bool = False) -> int | None:
        """The highest level of a gauge in a span, or the one before it; beyond the window where the span is.

        Levels that stand still have no row, so an old one usually holds. `fresh` is for those that never stand still:
        without a row in the span they were not read there, and what was before says nothing.
        """
        rows = self.recording.table("counters", from_us, to_us + 1, ("series", "value"))
        known = columns.records(self.recording.table("series", from_us, to_us + 1, ("series", "source", "name")))
        ids = [row["series"] for row in known if (row["source"], row["name"]) == (source, name)]
        inside = columns.numbers(rows.column("value"))[np.isin(columns.numbers(rows.column("series")), ids)]
        if fresh and not len(inside):
            return None
        before = self.gauge(source, name, from_us)
        return max([*inside.tolist(), *([] if before is None else [before])], default=None)

    def gauge(self, source: str, name: str, at_us: int | None = None) -> int | None:
        """The last value at or before a moment (the window's end), of whatever key."""
        from zombiescope.recording.series import last_value

        return last_value(self.recording, source, name, self.end_us if at_us is None else at_us)

    # --- cgroups -----------------------------------------------------------------------------------------------------

    @cached_property
    def cgroups(self) -> CgroupsView:
        return cgroups(self.recording, None, self.end_us)

    @cached_property
    def cgroup_stats(self) -> list[dict[str, Any]]:
        return columns.records(self.recording.table("cgroup_stats", self.start_us, self.end_us + 11 * SECOND_US))

    @cached_property
    def queues(self) -> list[dict[str, Any]]:
        """Which cores serve a NIC queue, as it was at the end of the window."""
        rows = columns.records(self.recording.table("queues", None, self.end_us))
        return list({(row["nic"], row["queue"], row["irq"]): row for row in rows}.values())

    # --- what cannot be known ----------------------------------------------------------------------------------------

    @property
    def missing(self) -> list[dict[str, Any]]:
        listed = self.node.get("missing")
        return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


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
