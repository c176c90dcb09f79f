"""What was measured in a window: the only way in which detectors and patterns look at a recording.

Everything is read when it is first asked for and kept. A number that was not measured is None, and a pattern that
needs it can neither be confirmed nor ruled out by it.
"""

from __future__ import annotations

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

DEFAULT_HZ = 99.0


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
        hz = self.node.get("hz")
        return float(hz) if isinstance(hz, int | float) and hz > 0 else DEFAULT_HZ

    @property
    def imported(self) -> bool:
        return isinstance(self.node.get("imported"), dict)

    # --- cores and samples -------------------------------------------------------------------------------------------

    @cached_property
    def cores(self) -> CoreGrid | None:
        return core_grid.load(self.recording, self.start_us, self.end_us)

    @cached_property
    def samples(self) -> SampleGrid:
        return SampleGrid(self.recording, self.start_us, self.end_us, self.hz)

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

    def rate(self, source: str, name: str, from_us: int, to_us: int) -> float | None:
        """Per second."""
        added = self.added(source, name, from_us=from_us, to_us=to_us + SECOND_US)
        return None if added is None else added / max((to_us - from_us) / 1e6, 1.0)

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
        return columns.records(self.recording.table("cgroup_stats", self.start_us, self.end_us + 10 * SECOND_US))

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
