"""One part of a recording, whatever its form: a log segment, or the Parquet files of one compaction.

Both give Arrow tables with the ids as they are stored; reader.py makes them unique over all parts. Both
read as much as is whole and put the rest into `damage`; neither raises on bad data.

Cost: a segment is decompressed and decoded whole (there is no index in it), and everything but its samples
is then kept, so the second table of the same segment is cheap. Of Parquet only the row groups that touch
the window and the columns that were asked for are read.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from zombiescope.recording import columns, schema
from zombiescope.recording.gaps import HOLE_US
from zombiescope.recording.layout import Manifest, SegmentFile, Span
from zombiescope.recording.log import Block, Damaged, Frame, SegmentReader
from zombiescope.recording.store import Store

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SLACK_US = 10_000_000  # a row may be this much older than its frame: rings are drained late under load


@dataclass(frozen=True, slots=True)
class Damage:
    """Something in a recording that could not be read."""

    file: str
    what: str


class Part(Protocol):
    name: str
    start_us: int
    boot: str
    damage: list[Damage]

    def touches(self, table: schema.Table, start_us: int | None, end_us: int | None) -> bool:
        """False only when no row of the table can be in the window."""

    def rows(
        self, table: schema.Table, start_us: int | None, end_us: int | None, wanted: Sequence[str] | None
    ) -> pa.Table:
        """The rows in the window. Rows of a dictionary are unique by id, the last one wins."""

    def count(self, table: schema.Table) -> int: ...

    def ids(self) -> dict[str, int]:
        """For each kind of id, one more than the largest."""

    def spans(self) -> tuple[Span, ...]: ...


# --- log segments ---------------------------------------------------------------------------------------


class SegmentPart:
    """A segment as it was when the part was made: what is appended later is not seen."""

    def __init__(self, store: Store, prefix: str, found: SegmentFile, *, hold: bool) -> None:
        """`hold` keeps the file open, so that compaction may delete its name. Raises FileNotFoundError."""
        self.name = found.name
        self.start_us = found.start_us
        self.size_bytes = found.size_bytes
        self.damage: list[Damage] = []
        self.growing = False
        self.until_us: int | None = None
        self.since_us: int | None = found.start_us
        self._store, self._path = store, prefix + found.name
        self._file: BinaryIO | None = store.open(self._path)
        self._blocks: dict[str, list[Block]] | None = None
        self._sample_rows = 0
        self._spans: list[Span] = []
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
        self._blocks = None
        self._spans = []
        self._sample_rows = 0

    @property
    def order(self) -> tuple[int, int]:
        """The order in which segments were written, which the wall clock alone does not tell."""
        return _int(self.header, "recorder_started_us"), _int(self.header, "seq")

    def _read_header(self, file: BinaryIO) -> dict[str, Any]:
        try:
            return SegmentReader(file).header
        except (Damaged, ValueError, OSError) as error:
            self.damage.append(Damage(self.name, str(error)))
            return {}

    def touches(self, table: schema.Table, start_us: int | None, end_us: int | None) -> bool:
        # A row of events or gaps may tell of something long before its frame; they are few and always read.
        if table.name in ("events", "gaps"):
            return True
        before = self.until_us is not None and start_us is not None and self.until_us + _SLACK_US < start_us
        after = self.since_us is not None and end_us is not None and self.since_us - _SLACK_US >= end_us
        return not (before or after)

    def rows(
        self, table: schema.Table, start_us: int | None, end_us: int | None, wanted: Sequence[str] | None
    ) -> pa.Table:
        gathering = columns.Gathering(table, wanted, start_us, end_us)
        if table is schema.SAMPLES:
            self._decode(gathering)
        else:
            for block in self._kept(table):
                gathering.add(block)
        return _keep_last(gathering.table(), table)

    def count(self, table: schema.Table) -> int:
        kept = self._kept(table)
        if table is schema.SAMPLES:
            return self._sample_rows
        if table.name in columns.DICTIONARIES:
            return len(set().union(*(block.column(columns.DICTIONARIES[table.name]) for block in kept)))
        return sum(block.rows for block in kept)

    def ids(self) -> dict[str, int]:
        counts = {}
        for name, kind in columns.DICTIONARIES.items():
            blocks = self._kept(schema.BY_NAME[name])
            counts[kind] = max(
                (max(filter(None, block.column(kind)), default=0) + 1 for block in blocks), default=0
            )
        return counts

    def spans(self) -> tuple[Span, ...]:
        self._kept(schema.CORES)
        return tuple(self._spans)

    def _kept(self, table: schema.Table) -> list[Block]:
        if self._blocks is None:
            self._decode(None)
        assert self._blocks is not None
        return self._blocks.get(table.name, [])

    def _decode(self, samples: columns.Gathering | None) -> None:
        first = self._blocks is None
        kept: dict[str, list[Block]] = {}
        reader = self._reader()
        for frame in reader.frames() if reader else ():
            if first:
                self._note(frame)
            for block in frame.blocks:
                if block.table is not schema.SAMPLES:
                    kept.setdefault(block.table.name, []).append(block)
                elif samples is not None:
                    samples.add(block)
        if first:
            self._blocks = kept
            self._sum_up(reader)

    def _reader(self) -> SegmentReader | None:
        try:
            return SegmentReader(io.BytesIO(self._bytes()))
        except FileNotFoundError:
            self.damage.append(Damage(self.name, "was removed while the recording was read"))
        except (Damaged, ValueError, OSError):
            pass  # said when the header was read
        return None

    def _bytes(self) -> bytes:
        if self._file is None:
            with self._store.open(self._path) as file:
                return file.read(self.size_bytes)
        self._file.seek(0)
        return self._file.read(self.size_bytes)

    def _note(self, frame: Frame) -> None:
        self._sample_rows += sum(block.rows for block in frame.blocks if block.table is schema.SAMPLES)
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

    def _sum_up(self, reader: SegmentReader | None) -> None:
        if reader is None:
            return
        left = self.size_bytes - reader.position
        if reader.damage:
            self.damage.append(Damage(self.name, f"{reader.damage}; {left} bytes behind it are lost"))
        elif left and not self.growing:
            self.damage.append(Damage(self.name, f"ends inside a frame; its last {left} bytes are lost"))


def _int(header: dict[str, Any], key: str) -> int:
    value = header.get(key)
    return value if isinstance(value, int) else 0


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
    if in_order:
        max(in_order, key=lambda segment: segment.start_us).growing = True
        in_order[-1].growing = True


def _keep_last(rows: pa.Table, table: schema.Table) -> pa.Table:
    kind = columns.DICTIONARIES.get(table.name)
    if kind is None or kind not in rows.column_names or len(rows) < 2:
        return rows
    ids = columns.numbers(rows.column(kind))
    unique, from_the_end = np.unique(ids[::-1], return_index=True)
    if len(unique) == len(ids) and bool(np.all(ids[1:] > ids[:-1])):
        return rows
    return columns.take(rows, len(ids) - 1 - from_the_end)


# --- compacted parts ------------------------------------------------------------------------------------


class ParquetPart:
    def __init__(self, store: Store, prefix: str, manifest: Manifest) -> None:
        self.name = manifest.part
        self.boot = manifest.boot
        self.start_us = manifest.from_us
        self.manifest = manifest
        self.damage = [Damage(manifest.name, what) for what in manifest.damage]
        self._store = store
        self._prefix = prefix

    def touches(self, table: schema.Table, start_us: int | None, end_us: int | None) -> bool:
        facts = self.manifest.tables.get(table.name)
        if facts is None:
            return False
        if table.time_column is not None:
            return _overlap(facts.from_us, facts.to_us, start_us, end_us)
        others = self.manifest.tables.values()
        return any(
            _overlap(other.from_us, other.to_us, start_us, end_us)
            for other in others
            if other.from_us is not None
        )

    def rows(
        self, table: schema.Table, start_us: int | None, end_us: int | None, wanted: Sequence[str] | None
    ) -> pa.Table:
        if table.name not in self.manifest.tables:
            return columns.empty(table, wanted)
        name = self.manifest.file(table.name)
        try:
            with self._store.open(self._prefix + name) as file:
                return _read_parquet(file, table, start_us, end_us, wanted)
        except (OSError, pa.ArrowException, EOFError) as error:
            self._damaged(name, str(error).splitlines()[0] if str(error) else repr(error))
            return columns.empty(table, wanted)

    def _damaged(self, name: str, what: str) -> None:
        entry = Damage(name, what)
        if entry not in self.damage:
            self.damage.append(entry)

    def count(self, table: schema.Table) -> int:
        facts = self.manifest.tables.get(table.name)
        return facts.rows if facts else 0

    def ids(self) -> dict[str, int]:
        return self.manifest.ids

    def spans(self) -> tuple[Span, ...]:
        return self.manifest.spans


def _overlap(from_us: int | None, to_us: int | None, start_us: int | None, end_us: int | None) -> bool:
    if from_us is None or to_us is None:
        return False
    return (start_us is None or to_us >= start_us) and (end_us is None or from_us < end_us)


def _read_parquet(
    file: BinaryIO,
    table: schema.Table,
    start_us: int | None,
    end_us: int | None,
    wanted: Sequence[str] | None,
) -> pa.Table:
    target = columns.arrow_schema(table, wanted)
    parquet = pq.ParquetFile(file, page_checksum_verification=True)
    stored = set(parquet.schema_arrow.names)
    needed = [name for name in target.names if name in stored]
    time = table.time_column
    if time is not None and time not in needed:
        needed.append(time)
    groups = _row_groups(parquet, time, start_us, end_us)
    rows = parquet.read_row_groups(groups, columns=needed, use_threads=True)
    if time is not None:
        rows = cut(rows, time, start_us, end_us)
    return _conform(rows, target)


def _row_groups(
    parquet: pq.ParquetFile, time: str | None, start_us: int | None, end_us: int | None
) -> list[int]:
    every = list(range(parquet.num_row_groups))
    if time is None or (start_us is None and end_us is None):
        return every
    position = parquet.schema_arrow.get_field_index(time)
    chosen = []
    for group in every:
        statistics = parquet.metadata.row_group(group).column(position).statistics
        known = statistics is not None and statistics.has_min_max
        if not known or _overlap(_unix_us(statistics.min), _unix_us(statistics.max), start_us, end_us):
            chosen.append(group)
    return chosen


def _unix_us(moment: datetime) -> int:
    """Microseconds of the datetime that pyarrow makes of a statistic, without going through a float."""
    since = moment - _EPOCH
    return ((since.days * 86_400) + since.seconds) * 1_000_000 + since.microseconds


def cut(rows: pa.Table, time: str, start_us: int | None, end_us: int | None) -> pa.Table:
    """Only the rows in the window; a slice when they are in the order of time."""
    if len(rows) == 0 or (start_us is None and end_us is None):
        return rows
    times = columns.numbers(rows.column(time))
    if bool(np.all(times[1:] >= times[:-1])):
        first = 0 if start_us is None else int(np.searchsorted(times, start_us, "left"))
        last = len(times) if end_us is None else int(np.searchsorted(times, end_us, "left"))
        return rows.slice(first, max(0, last - first))
    keep = np.ones(len(times), bool)
    if start_us is not None:
        keep &= times >= start_us
    if end_us is not None:
        keep &= times < end_us
    return columns.take(rows, np.flatnonzero(keep))


def _conform(rows: pa.Table, target: pa.Schema) -> pa.Table:
    """The columns as this version knows them: one that an older version did not write has no values."""
    arrays = []
    for field in target:
        if field.name not in rows.column_names:
            arrays.append(pa.chunked_array([pa.nulls(len(rows), field.type)]))
            continue
        column = rows.column(field.name)
        arrays.append(column if column.type == field.type else column.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=target)
