"""What keeps a recording in shape while it is written: closed segments are compacted, what is too old or too much goes.

Looked at every few seconds. Nothing here touches a ring or a counter. Directories are read and files deleted by whoever
is handed that work; what came of it is taken at the next look, or at once where it was done at once.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

from zombiescope.recorder.compactor import Compactor
from zombiescope.recorder.config import RecorderConfig
from zombiescope.recorder.disk import Disk, Inline
from zombiescope.recorder.sources import Sources
from zombiescope.store import retention
from zombiescope.store.event import Event
from zombiescope.store.segment_writer import SegmentWriter

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
        disk: Disk | None = None,
        certain_us: Callable[[int], int] = int,
    ) -> None:
        """`certain_us`: what time it is for whoever deletes what is old."""
        self._certain_us = certain_us
        self._disk = disk or Inline()
        self._survey, self._retain = self._disk.named("upkeep"), self._disk.named("retention")
        self._closed: list[str] = []
        self._freed: deque[retention.Freed | OSError] = deque(maxlen=1)
        self._node_dir = node_dir
        self._keep_us, self._max_bytes = int(config.keep_s * 1e6), config.max_bytes
        self._keep_earlier_names = config.keep_earlier_names
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
        self._survey(self._find_closed)
        self._compactor.start_if_due(wall_us, self._closed)
        if wall_us >= self._next_retention_us:
            self._next_retention_us = wall_us + RETENTION_US
            self._retain(partial(self._enforce, self._certain_us(wall_us)))
        self._note_retention(wall_us)
        for name in ("upkeep", "retention"):
            self._disk.raise_failure(name)

    def _find_closed(self) -> None:
        """Names first, then who is in use: one that is begun in between is not taken for closed."""
        try:
            names = sorted(entry.name for entry in os.scandir(self._node_dir / "log"))
        except OSError:
            names = []
        in_use = self._writer.in_use
        self._closed = [name for name in names if name not in in_use]

    def _enforce(self, now_us: int) -> None:
        """Segments are made by the thread that does this, so none is begun meanwhile."""
        try:
            in_use = self._writer.in_use
            self._freed.append(retention.enforce(self._node_dir, self._keep_us, self._max_bytes, now_us, in_use))
            if not self._keep_earlier_names:
                retention.enforce_earlier(self._node_dir, self._keep_us, self._max_bytes, now_us)
        except OSError as error:
            self._freed.append(error)

    def _note_retention(self, wall_us: int) -> None:
        if not self._freed:
            return
        freed = self._freed.popleft()
        if isinstance(freed, OSError):
            self._sources.lacks("retention", f"{freed.filename}: {freed.strerror}", "a writable directory", wall_us)
            return
        self._sources.has("retention", wall_us)
        for window in freed.frozen_given_up:
            text = f"the frozen window {window} was given up: frozen windows exceed their share of the disk budget"
            self._put(Event(wall_us, "frozen_given_up", "recorder", "warning", text, {"id": window}))
