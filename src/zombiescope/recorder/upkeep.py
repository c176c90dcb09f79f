"""What keeps a recording in shape while it is written: closed segments are compacted, what is too old or too much goes.

Looked at every few seconds. Nothing here touches a ring or a counter.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from zombiescope.recorder.compactor import Compactor
from zombiescope.recorder.config import RecorderConfig
from zombiescope.recorder.sources import Sources
from zombiescope.recording import retention
from zombiescope.recording.event import Event
from zombiescope.recording.segment_writer import SegmentWriter

RETENTION_US = 30_000_000


class Upkeep:
    def __init__(
        self,
        node_dir: Path,
        config: RecorderConfig,
        sources: Sources,
        writer: SegmentWriter,
        compactor: Compactor,
        put: Callable[[Event], None],
    ) -> None:
        self._node_dir = node_dir
        self._keep_us, self._max_bytes = int(config.keep_s * 1e6), config.max_bytes
        self._sources = sources
        self._writer = writer
        self._compactor = compactor
        self._put = put
        self._next_retention_us = 0

    def look(self, wall_us: int) -> None:
        ended = self._compactor.process.reap(wall_us)
        if ended is not None and ended.exit_code != 0:
            text = f"the compaction helper ended with {ended.exit_code}; its segments stay as they are"
            self._put(Event(wall_us, "helper_failed", "recorder", "warning", text))
        self._compactor.start_if_due(wall_us, self._closed_segments())
        if wall_us >= self._next_retention_us:
            self._next_retention_us = wall_us + RETENTION_US
            self._enforce_retention(wall_us)

    def _closed_segments(self) -> list[str]:
        try:
            names = sorted(entry.name for entry in os.scandir(self._node_dir / "log"))
        except OSError:
            return []
        return [name for name in names if name not in self._writer.in_use]

    def _enforce_retention(self, wall_us: int) -> None:
        try:
            freed = retention.enforce(self._node_dir, self._keep_us, self._max_bytes, wall_us, self._writer.in_use)
        except OSError as error:
            self._sources.lacks("retention", f"{error.filename}: {error.strerror}", "a writable directory", wall_us)
            return
        self._sources.has("retention", wall_us)
        for window in freed.frozen_given_up:
            text = f"the frozen window {window} was given up: frozen windows exceed their share of the disk budget"
            self._put(Event(wall_us, "frozen_given_up", "recorder", "warning", text, {"id": window}))
