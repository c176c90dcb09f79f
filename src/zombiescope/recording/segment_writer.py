"""The segment being written, and what happens when the disk does not take it.

Frames are appended with one write each. When a write fails (disk full, read-only, gone), the file is cut back to its
last whole frame and frames are held in memory, at most MAX_HELD_BYTES of them; every later flush tries again. When
even that is full the oldest held segment is given up and its span becomes a gap. While frames are held, segments are
kept short so that little is given up at a time."""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zombiescope import _safe_files
from zombiescope.recording.layout import segment_name
from zombiescope.recording.log import SegmentEncoder

MAX_HELD_BYTES = 8 << 20
HOLDING_SEGMENT_US = 10_000_000
_TRIES = 16


@dataclass(slots=True)
class _Segment:
    path: Path
    started_us: int
    encoder: SegmentEncoder
    last_us: int
    held: deque[bytes] = field(default_factory=deque)
    held_bytes: int = 0
    written: int = 0
    fd: int | None = None
    finished: bool = False


@dataclass(frozen=True, slots=True)
class Dropped:
    """A span whose frames never reached the disk."""

    from_us: int
    to_us: int
    why: str


class SegmentWriter:
    """Writes segments into one directory. Never raises for a disk that is full or gone."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._segments: deque[_Segment] = deque()
        self._dropped: list[Dropped] = []
        self.failing: str | None = None
        """Why the disk does not take frames now, or None."""
        self.failing_since_us: int | None = None
        self.bytes_written = 0

    @property
    def current(self) -> str | None:
        """Name of the segment being written."""
        return self._segments[-1].path.name if self._segments else None

    @property
    def in_use(self) -> set[str]:
        return {segment.path.name for segment in self._segments}

    @property
    def started_us(self) -> int | None:
        return self._segments[-1].started_us if self._segments else None

    @property
    def held_bytes(self) -> int:
        return sum(segment.held_bytes for segment in self._segments)

    def start(self, wall_us: int, header: dict[str, Any]) -> None:
        """Begins a new segment; the one before must have been finished."""
        path = self._directory / segment_name(wall_us)
        encoder = SegmentEncoder(header)
        segment = _Segment(path, wall_us, encoder, wall_us)
        self._segments.append(segment)
        self._hold(segment, encoder.preamble)

    def frame(self, wall_us: int, monotonic_ns: int, blocks: Sequence[bytes], *, closes: bool = False) -> None:
        """Appends a frame; with `closes` the segment ends."""
        segment = self._segments[-1]
        segment.last_us = wall_us
        segment.finished = closes
        self._hold(segment, segment.encoder.frame(wall_us, monotonic_ns, blocks, closes=closes))
        self.flush(wall_us)

    def _hold(self, segment: _Segment, data: bytes) -> None:
        segment.held.append(data)
        segment.held_bytes += len(data)

    def flush(self, wall_us: int) -> None:
        """Puts on disk what it takes."""
        while self._segments:
            segment = self._segments[0]
            try:
                self._write(segment)
            except OSError as error:
                self._fail(error, wall_us)
                return
            self.failing = self.failing_since_us = None
            if not segment.finished:
                return
            self._finish(segment)
            self._segments.popleft()

    def _write(self, segment: _Segment) -> None:
        if segment.fd is None:
            self._open(segment)
            assert segment.fd is not None
        while segment.held:
            data = segment.held[0]
            try:
                done = os.write(segment.fd, data)
            except OSError:
                os.ftruncate(segment.fd, segment.written)
                raise
            if done < len(data):  # the disk became full inside the frame
                os.ftruncate(segment.fd, segment.written)
                raise OSError(28, os.strerror(28), str(segment.path))
            segment.held.popleft()
            segment.held_bytes -= done
            segment.written += done
            self.bytes_written += done

    def _open(self, segment: _Segment) -> None:
        """Under its name; where that is taken, as after the clock was set back, under the next one."""
        _safe_files.make_directory(self._directory)
        start_us = segment.started_us
        for _ in range(_TRIES):
            try:
                segment.fd = _safe_files.create(segment.path, os.O_WRONLY | os.O_APPEND)
            except FileExistsError:
                start_us += 1
                segment.path = self._directory / segment_name(start_us)
            else:
                return
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(segment.path))

    def _finish(self, segment: _Segment) -> None:
        if segment.fd is not None:
            os.fsync(segment.fd)
            os.close(segment.fd)
            segment.fd = None

    def _fail(self, error: OSError, wall_us: int) -> None:
        if self.failing_since_us is None:
            self.failing_since_us = wall_us
        self.failing = f"{error.strerror} writing {error.filename or self._segments[0].path}"
        while self.held_bytes > MAX_HELD_BYTES and len(self._segments) > 1:
            segment = self._segments.popleft()
            if segment.fd is not None:
                os.close(segment.fd)
            if segment.held:
                self._dropped.append(Dropped(segment.started_us, segment.last_us, self.failing))

    def take_dropped(self) -> list[Dropped]:
        dropped, self._dropped = self._dropped, []
        return dropped

    def close(self, wall_us: int) -> None:
        """Last try, then lets go of the files."""
        self.flush(wall_us)
        for segment in self._segments:
            if segment.fd is not None:
                os.close(segment.fd)
                segment.fd = None
