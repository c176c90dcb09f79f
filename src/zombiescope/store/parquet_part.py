"""The Parquet files of one compaction as a part of a recording.

Only the row groups that touch the window and the columns that were asked for are read. Page checksums are
verified: a flipped bit costs the table of that part, and never gives a wrong number.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pyarrow as pa

from zombiescope.store import columns, parquet_footer, schema
from zombiescope.store.allowance import PARQUET_RATIO, TOTAL_FLOOR_BYTES, Allowance, TooMuchError
from zombiescope.store.layout import Manifest, Span
from zombiescope.store.parquet import ROWS_PER_GROUP
from zombiescope.store.parquet_footer import Footers
from zombiescope.store.part import Damage
from zombiescope.store.store import Store

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_CELL_BYTES = 8
THREADED_ROWS = 1_000_000
"""For fewer, a thread for each column costs more CPU than it saves time, and every thread keeps memory of its own: a
diagnosis of half an hour took 200 MB instead of 170."""
_SUMMARIES = frozenset(table.name for table in schema.SUMMARIES)
"""They are about whole seconds, so their rows may be older than anything in the part."""


class ParquetPart:
    def __init__(
        self,
        store: Store,
        prefix: str,
        manifest: Manifest,
        *,
        floor_bytes: int = TOTAL_FLOOR_BYTES,
        footers: Footers | None = None,
    ) -> None:
        """`floor_bytes`: what may come out of a table however small its file is; `footers`: those of other parts."""
        self._floor_bytes = floor_bytes
        self._footers = footers or Footers()
        self.name = manifest.part
        self.boot = manifest.boot
        self.start_us = manifest.from_us
        self.manifest = manifest
        self._tables = {name: facts for name, facts in manifest.tables.items() if _is_right(name, manifest.revision)}
        self.damage = [Damage(manifest.name, what) for what in manifest.damage]
        self._store = store
        self._prefix = prefix

    def touches(self, table: schema.Table, start_us: int | None, end_us: int | None) -> bool:
        facts = self._tables.get(table.name)
        if facts is None:
            return False
        if table.time_column is not None:
            return _overlap(facts.from_us, facts.to_us, start_us, end_us)
        return any(
            _overlap(other.from_us, other.to_us, start_us, end_us)
            for name, other in self._tables.items()
            if other.from_us is not None and name not in _SUMMARIES
        )

    def rows(
        self, table: schema.Table, start_us: int | None, end_us: int | None, wanted: Sequence[str] | None
    ) -> pa.Table:
        rows = self.readable(table, start_us, end_us, wanted)
        return columns.empty(table, wanted) if rows is None else rows

    def readable(
        self, table: schema.Table, start_us: int | None, end_us: int | None, wanted: Sequence[str] | None
    ) -> pa.Table | None:
        """The rows, or None where the part has no such table or it cannot be read; the latter is damage."""
        if table.name not in self._tables:
            return None
        if not self.touches(table, start_us, end_us):
            return columns.empty(table, wanted)
        name = self.manifest.file(table.name)
        start_us, end_us = self._cutting(table, start_us, end_us)
        try:
            with self._store.open(self._prefix + name) as file:
                footer = self._footers.of(self._prefix + name, file)
                return _read_parquet(file, table, start_us, end_us, wanted, self._floor_bytes, footer)
        except (OSError, pa.ArrowException, EOFError, LookupError, ValueError, OverflowError) as error:
            self._damaged(name, str(error).splitlines()[0] if str(error) else repr(error))
            return None

    def _cutting(self, table: schema.Table, start_us: int | None, end_us: int | None) -> tuple[int | None, int | None]:
        """The ends of the window that cut something off. Where none does, times need not be read."""
        span = self.span_of(table)
        if span is None:
            return start_us, end_us
        return (
            None if start_us is None or start_us <= span[0] else start_us,
            None if end_us is None or end_us > span[1] else end_us,
        )

    def span_of(self, table: schema.Table) -> tuple[int, int] | None:
        """The times of its first and its last row."""
        facts = self._tables.get(table.name)
        return None if facts is None or facts.from_us is None or facts.to_us is None else (facts.from_us, facts.to_us)

    def _damaged(self, name: str, what: str) -> None:
        entry = Damage(name, what)
        if entry not in self.damage:
            self.damage.append(entry)

    def count(self, table: schema.Table) -> int:
        facts = self._tables.get(table.name)
        return facts.rows if facts else 0

    def ids(self) -> dict[str, int]:
        return self.manifest.ids

    def spans(self) -> tuple[Span, ...]:
        return self.manifest.spans


def _is_right(name: str, revision: int) -> bool:
    """Whether what wrote the part wrote this table as it is meant."""
    table = schema.BY_NAME.get(name)
    return table is None or revision >= table.parquet_since


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
    floor_bytes: int,
    metadata: pq.FileMetaData | None = None,
) -> pa.Table:
    """`metadata`: of its footer, where that was checked."""
    target = columns.arrow_schema(table, wanted)
    allowance = Allowance(floor_bytes)
    allowance.earn(file.seek(0, os.SEEK_END), PARQUET_RATIO)
    file.seek(0)
    import pyarrow.parquet as pq  # 30 ms, and a node's last minutes are no Parquet yet

    metadata = parquet_footer.metadata(file) if metadata is None else metadata
    # Text stays a dictionary until it is known how long it is: one string may stand for a million rows.
    paths = {metadata.schema.column(number).path for number in range(metadata.num_columns)}
    texts = [field.name for field in target if pa.types.is_string(field.type) and field.name in paths]
    parquet = pq.ParquetFile(file, metadata=metadata, page_checksum_verification=True, read_dictionary=texts)
    stored = set(parquet.schema_arrow.names)
    needed = [name for name in target.names if name in stored]
    time = table.time_column
    cuts = time is not None and (start_us is not None or end_us is not None)
    if time is not None and cuts and time not in needed:
        needed.append(time)
    groups = _row_groups(parquet, time, start_us, end_us)
    _afford(parquet, groups, needed, allowance)
    many = sum(parquet.metadata.row_group(group).num_rows for group in groups) >= THREADED_ROWS
    rows = parquet.read_row_groups(groups, columns=needed, use_threads=many)
    if time is not None and cuts:
        rows = columns.cut(rows, time, start_us, end_us)
    for name in set(texts) & set(rows.column_names):
        allowance.spend(_text_bytes(rows.column(name)))
    return _conform(rows, target)


def _afford(parquet: pq.ParquetFile, groups: Sequence[int], needed: Sequence[str], allowance: Allowance) -> None:
    """What the row groups decode to, before they are read. Raises TooMuchError."""
    metadata = parquet.metadata
    known = set(needed)
    for group in map(metadata.row_group, groups):
        if group.num_rows > ROWS_PER_GROUP:
            raise TooMuchError(f"a row group has {group.num_rows} rows")
        for position in range(group.num_columns):
            chunk = group.column(position)
            if chunk.path_in_schema.split(".", 1)[0] in known:
                allowance.spend(_CELL_BYTES * max(chunk.num_values, group.num_rows))


def _text_bytes(column: pa.ChunkedArray) -> int:
    """The length of all texts of a column, each counted as often as it stands there."""
    total = 0
    for chunk in column.chunks:
        if not pa.types.is_dictionary(chunk.type):
            continue
        offsets, _ = columns.text_parts(pa.chunked_array([chunk.dictionary]))
        lengths = np.diff(offsets.astype(np.int64))
        rows = columns.ids(chunk.indices)
        total += int(lengths[rows[rows >= 0]].sum()) if len(lengths) else 0
    return total


def _row_groups(parquet: pq.ParquetFile, time: str | None, start_us: int | None, end_us: int | None) -> list[int]:
    every = list(range(parquet.num_row_groups))
    if time is None or (start_us is None and end_us is None):
        return every
    position = parquet.schema_arrow.get_field_index(time)
    chosen = []
    for group in every:
        statistics = parquet.metadata.row_group(group).column(position).statistics
        known = statistics is not None and statistics.has_min_max
        if not known or _overlap(statistics.min_raw, statistics.max_raw, start_us, end_us):
            chosen.append(group)
    return chosen


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
