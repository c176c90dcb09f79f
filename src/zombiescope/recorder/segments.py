"""From frame to frame and from segment to segment: what is collected is written once a second, and every two minutes
(`--segment`) a segment is closed and numbering starts anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zombiescope.recorder.sources import Sources
from zombiescope.recorder.stage import Barrier, Stage
from zombiescope.recorder.tick import Tick
from zombiescope.store import schema
from zombiescope.store.batch import Batch
from zombiescope.store.segment_writer import HOLDING_SEGMENT_US, SegmentWriter


class Segments:
    """`finish` are the stages before the last frame of a segment, `renew` those after it."""

    finish: Sequence[Stage] = ()
    renew: Sequence[Stage] = ()

    def __init__(
        self, writer: SegmentWriter, batch: Batch, sources: Sources, barrier: Barrier, header: dict[str, Any]
    ) -> None:
        self._writer = writer
        self._batch = batch
        self._sources = sources
        self._barrier = barrier
        self._header = header
        self._sequence = 0
        self._started_us = 0
        self._open = False

    def start(self, wall_us: int) -> None:
        self._writer.start(wall_us, {**self._header, "started_us": wall_us, "seq": self._sequence})
        self._sequence += 1
        self._started_us = wall_us
        self._open = True

    def due(self, wall_us: int, longest_us: int) -> bool:
        """Whether the segment has lasted long enough."""
        if self._writer.failing is not None:
            longest_us = min(longest_us, HOLDING_SEGMENT_US)
        return wall_us - (self._writer.started_us or wall_us) >= longest_us

    def frame(self, tick: Tick, *, closes: bool = False) -> None:
        if not self._open:  # whoever closed the last one failed before the next was begun
            self.start(tick.wall_us)
        blocks = self._batch.take_blocks(tick.wall_us)
        self._writer.frame(tick.wall_us, tick.monotonic_ns, blocks, closes=closes)

    def close(self, tick: Tick) -> None:
        """The last frame; sources that are missing are gaps of this segment as far as it goes."""
        self._barrier.run(self.finish, tick)
        self._batch.extend(schema.GAPS, self._sources.open_gaps(self._started_us, tick.wall_us))
        self.frame(tick, closes=True)
        self._open = False
        self._barrier.run(self.renew, tick)
