"""How a table becomes a Parquet file: sorted by time, in row groups that a reader can skip, small.

Times are delta encoded, everything that repeats is dictionary encoded, pages are zstd compressed and carry
checksums (a flipped bit is an error, not a number). Minimum and maximum are kept for times only: they are
what a window is found by.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa

from zombiescope.base import safe_files
from zombiescope.store import columns, schema
from zombiescope.store.layout import TableFacts

ROWS_PER_GROUP = 1 << 17
"""Five seconds of 96 busy cores at 99 Hz are 47,000 samples: a window of that size reads one group or two."""

_LEVEL = 6
_DICTIONARY_BYTES = 1 << 14
"""4,096 stacks: a row group with more is smaller without a dictionary (2.2 bytes a sample against 2.8)."""


class TableWriter:
    """Writes one table of one part; rows may come a little out of order, see `add`."""

    def __init__(self, table: schema.Table, part: str, path: Path) -> None:
        import pyarrow.parquet as pq  # 30 ms that a reader of the log need not pay

        self._table = table
        self._path = path
        self._part = part
        self._schema = columns.arrow_schema(table).append(pa.field("part", pa.string()))
        self._file = os.fdopen(safe_files.create_again(path), "wb")
        self._writer = pq.ParquetWriter(
            self._file,
            self._schema,
            compression="zstd",
            compression_level=_LEVEL,
            dictionary_pagesize_limit=_DICTIONARY_BYTES,
            use_dictionary=[column.name for column in table.columns if not _is_delta(table, column)] + ["part"],
            column_encoding={
                column.name: "DELTA_BINARY_PACKED" for column in table.columns if _is_delta(table, column)
            },
            write_statistics=[column.name for column in table.columns if column.kind == "time"],
            write_page_checksum=True,
            store_schema=False,
        )
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._bounds: list[int] = []

    def add(self, rows: pa.Table, settled_us: int | None = None) -> None:
        """More rows. None that comes later is older than settled_us, so what is older may be written."""
        if len(rows):
            self._note_bounds(rows)
            self._waiting.append(rows)
        if settled_us is not None and sum(len(waiting) for waiting in self._waiting) >= ROWS_PER_GROUP:
            self._write(settled_us)

    def _note_bounds(self, rows: pa.Table) -> None:
        time = self._table.time_column
        if time is not None:
            times = columns.numbers(rows.column(time))
            self._bounds = [min([*self._bounds, int(times.min())]), max([*self._bounds, int(times.max())])]

    def _write(self, settled_us: int | None) -> None:
        if not self._waiting:
            return
        rows = pa.concat_tables(self._waiting)
        self._waiting = []
        time = self._table.time_column
        if time is not None:
            rows = columns.in_order_of_time(rows, time)
            if settled_us is not None:
                settled = int(np.searchsorted(columns.numbers(rows.column(time)), settled_us))
                self._waiting = [rows.slice(settled)]
                rows = rows.slice(0, settled)
        self._rows += len(rows)
        self._writer.write_table(_with_part(rows, self._part), row_group_size=ROWS_PER_GROUP)

    def close(self) -> TableFacts:
        """Writes the rest; when this returns the bytes are on the disk."""
        self._write(None)
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return TableFacts(self._rows, self._path.stat().st_size, *self._bounds)

    def abandon(self) -> None:
        self._writer.close()
        self._file.close()
        self._path.unlink(missing_ok=True)


def _is_delta(table: schema.Table, column: schema.Column) -> bool:
    """Times, and ids that only go upwards: those that a dictionary table explains, and those that a summary counts."""
    if table is schema.STACK_COUNTS:
        return column.name == "stack"
    return column.kind == "time" or table.own_id == column.name


def _with_part(rows: pa.Table, part: str) -> pa.Table:
    repeated = columns.text_array([part]).take(columns.ints_array(np.zeros(len(rows), np.int64), None, pa.int64()))
    return rows.append_column(pa.field("part", pa.string()), repeated)
