"""A log segment as a part of a recording.

A segment is decompressed and checked whole, once: there is no index in it. Its blocks are then kept as they are on
disk. A table is one Arrow table, made of all its blocks when it is first asked for, and a window is a slice of it. Of
the samples, which are most of it, only those blocks are decoded that a window touches. A segment with very many
samples, as an import writes it, keeps none of them, and is read again.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from zombiescope.store import columns, newer, schema
from zombiescope.store.allowance import TOTAL_FLOOR_BYTES
from zombiescope.store.gaps import HOLE_US
from zombiescope.store.layout import SegmentFile, Span
from zombiescope.store.log import DamagedError, EncodedBlock, LogFrame, SegmentReader
from zombiescope.store.part import Damage
from zombiescope.store.store import Store

_SLACK_US = 10_000_000  # a row may be this much older than its frame: rings are drained late under load
_LATE_US = {"gpu_seconds": 40_000_000, "schedule": 75_000_000}
"""A driver gives the seconds since it was last asked, and may make us wait; a snapshot reaches back for a minute."""
KEPT_SAMPLE_BYTES = 8 << 20
"""Two minutes of 200 busy cores, as they are on disk."""


class SegmentPart:
    """A segment as it was when the part was made: what is appended later is not seen."""

    def __init__(
        self, store: Store, prefix: str, found: SegmentFile, *, hold: bool, floor_bytes: int = TOTAL_FLOOR_BYTES
    ) -> None:
        """`hold` keeps the file open, so that compaction may delete its name; `floor_bytes`: what may come out of it
        however small it is. Raises FileNotFoundError."""
        self._floor_bytes = floor_bytes
        self.name = found.name
        self.start_us = found.start_us
        self.size_bytes = found.size_bytes
        self.damage: list[Damage] = []
        self.growing = False
        self.until_us: int | None = None
        self.since_us: int | None = found.start_us
        self._store, self._path = store, prefix + found.name
        self._file: BinaryIO | None = store.open(self._path)
        self._blocks: dict[str, list[EncodedBlock]] | None = None
        self._tables: dict[str, pa.Table] = {}
        self._times: dict[str, columns.Ints | None] = {}
        self._samples: list[EncodedBlock] | None = None
        self._sample_rows = 0
        self._spans: list[Span] = []
        self._ids: dict[str, int] = {}
        self._unknown: frozenset[int] = frozenset()
        self.header = self._read_header(self._file)
        if not hold:
            self.close()
        self.boot = str(self.header.get("boot", ""))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def forget(self) -> None:
        """Drops what was decoded; it is decoded again when it is asked for."""
        self._blocks = self._samples = None
        self._tables = {}
        self._times = {}
        self._spans = []
        self._sample_rows = 0

    @property
    def order(self) -> tuple[int, int]:
        """The order in which segments were written, which the wall clock alone does not show."""
        return _int(self.header, "recorder_started_us"), _int(self.header, "seq")

    def _read_header(self, file: BinaryIO) -> dict[str, Any]:
        try:
            return SegmentReader(file).header
        except (DamagedError, ValueError, OSError) as error:
            self._damaged(str(error))
            return {}

    def touches(self, table: schema.Table, start_us: int | None, end_us: int | None) -> bool:
        # A row of events or gaps may be about something long before its frame; they are few and always read.
        if table.name in ("events", "gaps"):
            return True
        slack_us = _LATE_US.get(table.name, _SLACK_US)
        before = self.until_us is not None and start_us is not None and self.until_us + _SLACK_US < start_us
        after = self.since_us is not None and end_us is not None and self.since_us - slack_us >= end_us
        return not (before or after)

    def rows(
        self, table: schema.Table, start_us: int | None, end_us: int | None, wanted: Sequence[str] | None
    ) -> pa.Table:
        names = columns.arrow_schema(table, wanted).names
        if table is not schema.SAMPLES:
            return self._window(table, start_us, end_us).select(names)
        touched = [
            block
            for block in self._sample_blocks()
            if (start_us is None or block.highest >= start_us) and (end_us is None or block.lowest < end_us)
        ]
        # With the time, which is the first column, to cut it by.
        rows = columns.decoded(table, touched, list(dict.fromkeys((*table.names[:1], *names))))
        return _cut(rows, table.time_column, start_us, end_us).select(names)

    def count(self, table: schema.Table) -> int:
        self._decode()
        return self._sample_rows if table is schema.SAMPLES else len(self._table(table))

    def ids(self) -> dict[str, int]:
        self._decode()
        return self._ids

    def of_a_newer_version(self) -> str | None:
        """What of it only a newer version can read; None where this one reads all of it."""
        if not newer.may_hold(self.header):
            return None
        self._decode()
        return newer.what(self._unknown)

    def spans(self) -> tuple[Span, ...]:
        self._decode()
        return tuple(self._spans)

    def _table(self, table: schema.Table) -> pa.Table:
        """All of its rows, as they are kept; of a dictionary the last that was said of each id."""
        found = self._tables.get(table.name)
        if found is None:
            blocks = self._decode()
            made = columns.decoded(table, blocks.get(table.name, ()))
            # In this order, for a reader in another thread: where the blocks are gone, the table is there.
            found = self._tables.setdefault(table.name, _keep_last(made, table))
            blocks.pop(table.name, None)
        return found

    def _window(self, table: schema.Table, start_us: int | None, end_us: int | None) -> pa.Table:
        """The rows of a window; a slice, where they are in the order of time."""
        rows, column = self._table(table), table.time_column
        if column is None or (start_us is None and end_us is None):
            return rows
        if table.name not in self._times:
            self._times[table.name] = _ordered_times(rows.column(column))
        times = self._times[table.name]
        if times is None:
            return _cut(rows, column, start_us, end_us)
        first = 0 if start_us is None else int(times.searchsorted(start_us))
        last = len(times) if end_us is None else int(times.searchsorted(end_us))
        return rows if last - first == len(times) else rows.slice(first, max(0, last - first))

    def _sample_blocks(self) -> Iterator[EncodedBlock]:
        self._decode()
        if self._samples is not None:
            yield from self._samples
        elif (reader := self._reader()) is not None:
            for frame in reader.frames(encoded=True):
                yield from (block for block in frame.encoded if block.stored.name == schema.SAMPLES.name)

    def _decode(self) -> dict[str, list[EncodedBlock]]:
        """The blocks of all tables that nobody asked for yet."""
        if self._blocks is None:
            kept: dict[str, list[EncodedBlock]] = {}
            reader = self._reader()
            for frame in reader.frames(encoded=True) if reader else ():
                self._note(frame)
                for block in frame.encoded:
                    kept.setdefault(block.stored.name, []).append(block)
            samples = kept.pop(schema.SAMPLES.name, [])
            if sum(len(block.body) for block in samples) <= KEPT_SAMPLE_BYTES:
                self._samples = samples
            self._ids = {str(table.explains): _id_count(kept.get(table.name, ())) for table in schema.DICTIONARIES}
            self._sum_up(reader)
            self._blocks = kept
        return self._blocks

    def _reader(self) -> SegmentReader | None:
        try:
            return SegmentReader(io.BytesIO(self._bytes()), self._floor_bytes)
        except FileNotFoundError:
            self._damaged("was removed while the recording was read")
        except (DamagedError, ValueError, OSError):
            pass  # said when the header was read
        return None

    def _bytes(self) -> bytes:
        if self._file is None:
            with self._store.open(self._path) as file:
                return file.read(self.size_bytes)
        self._file.seek(0)
        return self._file.read(self.size_bytes)

    def _note(self, frame: LogFrame) -> None:
        self._sample_rows += sum(block.rows for block in frame.encoded if block.stored.name == schema.SAMPLES.name)
        boot, seq, run = self.boot, _int(self.header, "seq"), _int(self.header, "recorder_started_us")
        hole = max(HOLE_US, 3 * _int(self.header, "interval_us"))
        last = self._spans[-1] if self._spans else None
        if last is not None and last.to_us <= frame.wall_us <= last.to_us + hole:
            self._spans[-1] = Span(
                last.from_us, frame.wall_us, run, boot, seq, seq, last.from_monotonic_ns, frame.monotonic_ns
            )
            return
        interval = _int(self.header, "interval_us")
        from_us = min(self.start_us, frame.wall_us) if last is None else frame.wall_us - interval
        from_ns = frame.monotonic_ns - (frame.wall_us - from_us) * 1000
        self._spans.append(Span(from_us, frame.wall_us, run, boot, seq, seq, from_ns, frame.monotonic_ns))

    def _damaged(self, what: str) -> None:
        entry = Damage(self.name, what)
        if entry not in self.damage:  # it may be decoded twice
            self.damage.append(entry)

    def _sum_up(self, reader: SegmentReader | None) -> None:
        if reader is None:
            return
        self._unknown = reader.unknown
        if reader.left_out:
            self._damaged(reader.left_out)
        left = self.size_bytes - reader.position
        if reader.damage:
            self._damaged(f"{reader.damage}; the {left} bytes after it are lost")
        elif left and not self.growing:
            self._damaged(f"ends inside a frame; its last {left} bytes are lost")


def _int(header: dict[str, Any], key: str) -> int:
    value = header.get(key)
    return value if isinstance(value, int) else 0


def _id_count(blocks: Sequence[EncodedBlock]) -> int:
    """Ids are the first column of a dictionary."""
    return max((max(block.highest, 0) + 1 for block in blocks if block.rows), default=0)


def _last_row_us(header: dict[str, Any], known: int | None) -> int | None:
    """An import knows its rows before it writes the header, and says how far they reach: files may overlap."""
    last = header.get("last_row_us")
    return last if isinstance(last, int) else known


def bound(segments: Sequence[SegmentPart]) -> None:
    """Tells each segment how far its rows can reach, from the start of the one written after it.

    A clock that is set back inside a segment puts rows before the segment's start; the next segment's start
    shows it.
    """
    in_order = sorted(segments, key=lambda segment: segment.order)
    for segment, following in pairwise(in_order):
        segment.until_us = max(segment.start_us, following.start_us)
        if following.start_us < segment.start_us:
            segment.since_us = None
    for segment in segments:
        segment.until_us = _last_row_us(segment.header, segment.until_us)
    if in_order:
        max(in_order, key=lambda segment: segment.start_us).growing = True
        in_order[-1].growing = True


def _cut(rows: pa.Table, time: str | None, start_us: int | None, end_us: int | None) -> pa.Table:
    """The rows of a window; one without a time is in none."""
    if time is None or (start_us is None and end_us is None):
        return rows
    if rows.column(time).null_count:
        rows = columns.take(rows, np.flatnonzero(columns.present(rows.column(time))))
    return columns.cut(rows, time, start_us, end_us)


def _ordered_times(column: pa.ChunkedArray) -> columns.Ints | None:
    """The times of all rows; None where some have none, or they are not in order."""
    times = columns.numbers(column)
    return times if not column.null_count and bool(np.all(times[1:] >= times[:-1])) else None


def _keep_last(rows: pa.Table, table: schema.Table) -> pa.Table:
    own = table.own_id
    if own is None or own not in rows.column_names or len(rows) < 2:
        return rows
    ids = columns.numbers(rows.column(own))
    unique, from_the_end = np.unique(ids[::-1], return_index=True)
    if len(unique) == len(ids) and bool(np.all(ids[1:] > ids[:-1])):
        return rows
    return columns.take(rows, len(ids) - 1 - from_the_end)
