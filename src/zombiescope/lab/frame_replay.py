"""A recording written again, frame by frame, as its recorder wrote it: what was on the disk at any moment.

A segment is one stream, so its first frames are a whole recording of the time until then. The live doctor looks at a
directory; this one grows as far as it is told.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from zombiescope.store import layout
from zombiescope.store.log import SegmentReader


@dataclass(frozen=True, slots=True)
class _Frame:
    segment: str
    wall_us: int
    data: bytes


class FrameReplay:
    """The log of one node, appended to `node_dir` bit by bit."""

    def __init__(self, source: Path, node_dir: Path) -> None:
        """`source` is a node's directory whose log holds all of it. Raises OSError."""
        self.node_dir = node_dir
        self._log = node_dir / layout.LOG_FOLDER.rstrip("/")
        self._log.mkdir(parents=True)
        shutil.copy(source / layout.NODE_FILE, node_dir)
        self._frames = [frame for path in sorted((source / layout.LOG_FOLDER).glob("*.seg")) for frame in _frames(path)]
        self._next = 0

    @property
    def ticks_us(self) -> list[int]:
        return [frame.wall_us for frame in self._frames]

    def write_until(self, wall_us: int) -> None:
        """Every frame up to a moment that was not written yet."""
        while self._next < len(self._frames) and self._frames[self._next].wall_us <= wall_us:
            frame = self._frames[self._next]
            with open(self._log / frame.segment, "ab") as file:
                file.write(frame.data)
            self._next += 1


def _frames(path: Path) -> Iterator[_Frame]:
    """The first one brings the segment's header."""
    data = path.read_bytes()
    reader = SegmentReader(io.BytesIO(data))
    begin = 0
    for frame in reader.frames():
        yield _Frame(path.name, frame.wall_us, data[begin : reader.position])
        begin = reader.position
