"""Disks at every tick: what they completed, what is in flight, and which of them stand still.

One file, whatever hangs (kernel/diskstats.py)."""

from __future__ import annotations

from zombiescope.kernel import diskstats
from zombiescope.kernel.diskstats import DiskStat
from zombiescope.kernel.procfile import ProcFile, at, names_in
from zombiescope.recorder.source import Context, Source
from zombiescope.recorder.tick import Tick
from zombiescope.store import schema

MOST = 64
"""Rows a tick; those that stand still first, then the busiest."""


class Disks(Source):
    name = "disks"
    grant = "a /proc with block devices"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._file = ProcFile(at(context.root, "proc/diskstats"))
        self._before: dict[str, DiskStat] = {}
        self._read_us = 0
        self._whole: frozenset[str] | None = frozenset()
        self.stalled: dict[str, int] = {}
        """Disk -> since when it has requests and completes none."""

    def forget(self) -> None:
        self._before.clear()
        self.stalled.clear()

    def tick(self, tick: Tick) -> str | None:
        data = self._file.read()
        if data is None:
            return f"/proc/diskstats: {self._file.why}"
        self._compare(tick, self._disks(diskstats.parse(data)))
        return None

    def _disks(self, found: dict[str, DiskStat]) -> dict[str, DiskStat]:
        """Without partitions."""
        if self._whole is not None and not found.keys() <= self._before.keys():
            names = names_in(at(self.context.root, "sys/block"))
            self._whole = None if names is None else frozenset(names)
        whole = self._whole
        return found if whole is None else {name: stat for name, stat in found.items() if name in whole}

    def _compare(self, tick: Tick, now: dict[str, DiskStat]) -> None:
        interval_us = tick.wall_us - self._read_us if self._read_us else tick.interval_us
        rows = []
        for name, stat in now.items():
            before = self._before.get(name)
            self._follow(name, stat, before, tick.wall_us - interval_us)
            if before is not None and (row := _row(tick.wall_us, interval_us, name, stat, before)) is not None:
                rows.append(row)
        for gone in self.stalled.keys() - now.keys():
            del self.stalled[gone]
        rows.sort(key=lambda row: (row[2] not in self.stalled, -row[9]))
        self.context.batch.extend(schema.DISKS, rows[:MOST])
        self._before, self._read_us = now, tick.wall_us

    def _follow(self, name: str, stat: DiskStat, before: DiskStat | None, since_us: int) -> None:
        stands = before is not None and stat.in_flight and before.in_flight and stat.completed == before.completed
        if stands:
            self.stalled.setdefault(name, since_us)
        else:
            self.stalled.pop(name, None)

    def stalled_s(self, now_us: int) -> float:
        """How long the one that stands still longest has done so."""
        return max(((now_us - since_us) / 1e6 for since_us in self.stalled.values()), default=0.0)

    def close(self) -> None:
        self._file.close()


Row = tuple[int, int, str, int, int, int, int, int, int, int, int]


def _row(at_us: int, interval_us: int, name: str, now: DiskStat, before: DiskStat) -> Row | None:
    """None where it did nothing. What is less than before was counted anew: nothing is known."""
    added = [new - old for new, old in zip(now[1:6] + now[7:], before[1:6] + before[7:], strict=True)]
    if (not any(added) and not now.in_flight) or min(added) < 0:
        return None
    reads, writes, others, read_bytes, written_bytes, busy_ms, weighted_ms = added
    counts = (reads, writes, others, read_bytes, written_bytes, busy_ms, weighted_ms)
    return (at_us, interval_us, name, now.in_flight, *counts)
