"""What recording costs, a row a tick: our own CPU time, that of the child processes, memory, and what went through."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from zombiescope._native import Sampler
from zombiescope.recorder.tick import Tick
from zombiescope.store import schema
from zombiescope.store.batch import Batch
from zombiescope.store.segment_writer import SegmentWriter

RSS_EVERY = 10
"""Ticks."""


class CostBook:
    """Remembers the totals of the last tick and writes differences."""

    def __init__(
        self, batch: Batch, sampler: Sampler, writer: SegmentWriter, children_cpu_us: Callable[[], int]
    ) -> None:
        self._batch = batch
        self._sampler = sampler
        self._writer = writer
        self._children_cpu_us = children_cpu_us
        self._ticks = 0
        self._before = (time.process_time_ns() // 1000, 0, 0, 0, 0)

    def tick(self, tick: Tick) -> None:
        now = (
            time.process_time_ns() // 1000, self._children_cpu_us(),
            self._sampler.lost, self._sampler.records, self._writer.bytes_written,
        )  # fmt: skip
        own, children, lost, records, written = (new - old for new, old in zip(now, self._before, strict=True))
        rss = rss_bytes() if self._ticks % RSS_EVERY == 0 else None
        self._batch.add(schema.COST, (tick.wall_us, own, rss, children, tick.late_us, lost, records, written))
        self._before = now
        self._ticks += 1


def rss_bytes() -> int | None:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError, ValueError):
        return None
