"""The segment being written, and what happens when the disk does not take it.

Frames are appended with one write each. When a write fails (disk full, read-only, gone), the file is cut back to its
last whole frame and frames are held in memory, at most MAX_HELD_BYTES of them; every later flush tries again. When
even that is full the oldest held segment is given up and its span becomes a gap. While frames are held, segments are
kept short so that little is given up at a time.

A write may also not return. Whoever must not wait for it gives a `hand_over` that flushes in another thread: frames are
then only held where they are made, and a flush that has not returned for STALLED_S counts as a disk that fails."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from zombiescope.base import safe_files
from zombiescope.store.layout import segment_name
from zombiescope.store.log import SegmentEncoder

MAX_HELD_BYTES = 8 << 20
HOLDING_SEGMENT_US = 10_000_000
STALLED_S = 2.0
_TRIES = 16

HandOver = Callable[[Callable[[], object]], object]


def at_once(work: Callable[[], object]) -> object:
    return work()


class _Held(NamedTuple):
    wall_us: int
    data: bytes


@dataclass(slots=True)
class _Segment:
    path: Path
    started_us: int
    encoder: SegmentEncoder
    last_us: int
    """Of the newest frame."""
    written_us: int
    """Of the newest frame on disk; its start where there is none."""
    held: deque[_Held] = field(default_factory=deque)
    held_bytes: int = 0
    written: int = 0
    fd: int | None = None
    torn: bool = False
    """There may be a part of a frame after the last whole one."""
    finished: bool = False

    @property
    def unwritten(self) -> int:
        return max(0, len(self.held) - (self.written == 0))


@dataclass(frozen=True, slots=True)
class Dropped:
    """A span whose frames never reached the disk."""

    from_us: int
    to_us: int
    why: str


class SegmentWriter:
    """Writes segments into one directory. Never raises for a disk that is full or gone. `start` and `frame` are called
    by one thread, flushes are done by one; the lock is held for moments, never during a write."""

    def __init__(self, directory: Path, hand_over: HandOver = at_once) -> None:
        self.directory = directory
        self._hand_over = hand_over
        self._lock = threading.Lock()
        self._segments: deque[_Segment] = deque()
        self._busy: _Segment | None = None
        self._busy_since: tuple[float, int] | None = None
        self._forsaken: list[int] = []
        self._dropped: list[Dropped] = []
        self.failing: str | None = None
        """Why the disk does not take frames now, or None."""
        self.failing_since_us: int | None = None
        self.frames_written = self.bytes_written = 0
        self.written_us: int | None = None
        """Of the newest frame on disk."""
        self._given_up = 0
        """Frames of segments for which there was no room in memory any more."""

    @property
    def current(self) -> str | None:
        """Name of the segment being written."""
        return self._segments[-1].path.name if self._segments else None

    @property
    def in_use(self) -> set[str]:
        with self._lock:
            return {segment.path.name for segment in self._segments}

    @property
    def started_us(self) -> int | None:
        with self._lock:
            return self._segments[-1].started_us if self._segments else None

    @property
    def held_bytes(self) -> int:
        with self._lock:
            return sum(segment.held_bytes for segment in self._segments)

    @property
    def is_stalled(self) -> bool:
        """Whether a write does not return."""
        under_way = self._busy_since
        return under_way is not None and time.monotonic() - under_way[0] >= STALLED_S

    @property
    def unwritten(self) -> int:
        """Frames that did not reach the disk: those given up, and those that are held still. A segment's first entry
        is its header."""
        with self._lock:
            return self._given_up + sum(segment.unwritten for segment in self._segments)

    # --- where frames are made ----------------------------------------------------------------------------------------

    def start(self, wall_us: int, header: dict[str, Any]) -> None:
        """Begins a new segment; the one before must have been finished."""
        path = self.directory / segment_name(wall_us)
        encoder = SegmentEncoder(header)
        segment = _Segment(path, wall_us, encoder, wall_us, wall_us)
        self._hold(segment, _Held(wall_us, encoder.preamble))
        with self._lock:
            self._segments.append(segment)

    def frame(self, wall_us: int, monotonic_ns: int, blocks: Sequence[bytes], *, closes: bool = False) -> None:
        """Appends a frame; with `closes` the segment ends."""
        segment = self._segments[-1]
        data = segment.encoder.frame(wall_us, monotonic_ns, blocks, closes=closes)
        with self._lock:
            segment.last_us = wall_us
            segment.finished = closes
            self._hold(segment, _Held(wall_us, data))
        self._note_stall()
        self._make_room()
        self._hand_over(partial(self.flush, wall_us))

    def _hold(self, segment: _Segment, held: _Held) -> None:
        segment.held.append(held)
        segment.held_bytes += len(held.data)

    def _note_stall(self) -> None:
        under_way = self._busy_since
        if under_way is not None and self.is_stalled:
            busy = self._busy
            self._fails(f"the disk does not answer, writing {busy.path if busy else self.directory}", under_way[1])

    def _make_room(self) -> None:
        """Gives up the oldest segments, but not the one that is being written, nor the newest."""
        while self.failing is not None and self.held_bytes > MAX_HELD_BYTES:
            with self._lock:
                segment = next((one for one in list(self._segments)[:-1] if one is not self._busy), None)
                if segment is None:
                    return
                self._segments.remove(segment)
            if segment.fd is not None:
                self._forsaken.append(segment.fd)
            self._given_up += segment.unwritten
            if segment.held:
                self._dropped.append(Dropped(segment.written_us, segment.last_us, self.failing))

    def take_dropped(self) -> list[Dropped]:
        dropped, self._dropped = self._dropped, []
        return dropped

    def _fails(self, why: str, since_us: int) -> None:
        self.failing = why
        if self.failing_since_us is None:
            self.failing_since_us = since_us

    # --- where they are written ---------------------------------------------------------------------------------------

    def flush(self, wall_us: int) -> None:
        """Puts on disk what it takes."""
        self._busy_since = (time.monotonic(), wall_us)
        try:
            while self._flush_oldest():
                pass
        except OSError as error:
            path = self._busy.path if self._busy else self.directory
            self._fails(f"{error.strerror} writing {error.filename or path}{self._room(error)}", wall_us)
        finally:
            self._busy = self._busy_since = None

    def _room(self, error: OSError) -> str:
        """How much is left, where it is not enough."""
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            return ""
        try:
            there = os.statvfs(self.directory.parent)
        except OSError:
            return ""
        return f" ({there.f_bavail * there.f_frsize:,} bytes are free)"

    def _flush_oldest(self) -> bool:
        """Whether there may be more to write."""
        while self._forsaken:
            os.close(self._forsaken.pop())
        with self._lock:
            segment = self._busy = self._segments[0] if self._segments else None
        if segment is None:
            return False
        self._write(segment)
        with self._lock:
            complete = segment.finished and not segment.held
        if complete:
            self._finish(segment)
            with self._lock:
                self._segments.remove(segment)
        self.failing = self.failing_since_us = None
        return complete

    def _write(self, segment: _Segment) -> None:
        if segment.fd is None:
            self._open(segment)
            assert segment.fd is not None
        while segment.held:
            wall_us, data = segment.held[0]
            self._cut_back(segment)
            segment.torn = True
            done = self._append(segment, data)
            if done < len(data):  # the disk became full inside the frame
                self._cut_back(segment)
                self._remove_if_empty(segment)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(segment.path))
            segment.torn = False
            with self._lock:
                segment.held.popleft()
                segment.held_bytes -= done
            segment.written += done
            segment.written_us = self.written_us = wall_us
            self.bytes_written += done
            self.frames_written += 1

    def _append(self, segment: _Segment, data: bytes) -> int:
        """A file that takes not even its first bytes goes: an empty one would be damage for whoever reads it."""
        assert segment.fd is not None
        try:
            done = os.write(segment.fd, data)
        except OSError:
            self._remove_if_empty(segment)
            raise
        return done

    def _remove_if_empty(self, segment: _Segment) -> None:
        if segment.written or segment.fd is None:
            return
        os.close(segment.fd)
        segment.fd, segment.torn = None, False
        with suppress(OSError):
            safe_files.remove(segment.path)

    def _cut_back(self, segment: _Segment) -> None:
        """To whole frames. Where files are never written in place even this may need room: then before the next."""
        if segment.torn and segment.fd is not None:
            os.ftruncate(segment.fd, segment.written)
            segment.torn = False

    def _open(self, segment: _Segment) -> None:
        """Under its name; where that is taken, as after the clock was set back, under the next one."""
        safe_files.make_directory(self.directory)
        start_us = segment.started_us
        for _ in range(_TRIES):
            try:
                segment.fd = safe_files.create(segment.path, os.O_WRONLY | os.O_APPEND)
            except FileExistsError:
                start_us += 1
                segment.path = self.directory / segment_name(start_us)
            else:
                return
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(segment.path))

    def _finish(self, segment: _Segment) -> None:
        if segment.fd is not None:
            os.fsync(segment.fd)
            os.close(segment.fd)
            segment.fd = None

    def close(self, wall_us: int) -> None:
        """Last try, then lets go of the files."""
        self._hand_over(partial(self._close, wall_us))

    def _close(self, wall_us: int) -> None:
        self.flush(wall_us)
        for segment in self._segments:
            if segment.fd is not None:
                os.close(segment.fd)
                segment.fd = None
