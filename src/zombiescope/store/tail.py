"""Following a recording while it is written: frames as they are appended, over the ends of segments.

Imports neither numpy nor pyarrow. Starts with the segment that was written to last, from its beginning: ids
mean nothing without the rows that came before, and `top` has something to show at once. Which segment comes
next is known by its header (run and number), not by its name: the clock may have been set back.

A frame is seen at most one poll (a quarter of a second) after the recorder wrote it. A segment that is
damaged is left at the damage; following goes on with the next one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from zombiescope.store.layout import LOG_FOLDER, SegmentFile, segment_files
from zombiescope.store.log import DamagedError, LogFrame, SegmentReader
from zombiescope.store.store import Directory

POLL_S = 0.25


class Tail:
    """Reads what a recorder appends. `header` is that of the segment read last."""

    def __init__(self, node_dir: Path) -> None:
        self._store = Directory(node_dir)
        self._file: BinaryIO | None = None
        self._reader: SegmentReader | None = None
        self._seen: set[str] = set()
        self.header: dict[str, Any] = {}
        found = self._segments()
        if found:
            newest = max(found, key=lambda segment: _written_ns(node_dir / segment.name))
            self._seen = {segment.name for segment in found if segment is not newest}

    def _segments(self) -> list[SegmentFile]:
        return segment_files(self._store.entries(LOG_FOLDER))

    def poll(self) -> list[LogFrame]:
        """The frames that were appended since the last call; none when there are none. Never waits."""
        frames = self._drain()
        while True:
            following = self._following()
            if following is None:
                return frames
            # The recorder may have written to the old segment after the first look and before the new one.
            frames += self._drain()
            self._switch(*following)
            frames += self._drain()

    def _drain(self) -> list[LogFrame]:
        return list(self._reader.frames()) if self._reader else []

    def _following(self) -> tuple[SegmentFile, BinaryIO, SegmentReader] | None:
        """The next segment that has a header, opened."""
        found = []
        for segment in self._segments():
            if segment.name not in self._seen:
                opened = self._open(segment)
                if opened:
                    found.append((segment, *opened))
        found.sort(key=lambda item: _order(item[2].header))
        for _, file, _ in found[1:]:
            file.close()
        return found[0] if found else None

    def _open(self, segment: SegmentFile) -> tuple[BinaryIO, SegmentReader] | None:
        try:
            file = self._store.open(segment.name)
        except FileNotFoundError:
            return None
        try:
            return file, SegmentReader(file)
        except (DamagedError, ValueError, OSError):
            file.close()  # its header may not be written yet: it is looked at again
            return None

    def _switch(self, segment: SegmentFile, file: BinaryIO, reader: SegmentReader) -> None:
        self.close()
        self._file, self._reader = file, reader
        self._seen.add(segment.name)
        self.header = reader.header

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = self._reader = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _written_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _order(header: dict[str, Any]) -> tuple[int, int]:
    run, number = header.get("recorder_started_us"), header.get("seq")
    return (run if isinstance(run, int) else 0), (number if isinstance(number, int) else 0)


def follow(node_dir: Path, *, stop: Callable[[], bool] = lambda: False, poll_s: float = POLL_S) -> Iterator[LogFrame]:
    """Every frame of the current segment and then each new one as it comes, until stop() is true."""
    with Tail(node_dir) as tail:
        while not stop():
            frames = tail.poll()
            yield from frames
            if not frames:
                time.sleep(poll_s)
