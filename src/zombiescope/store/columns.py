"""From log blocks to Arrow and from Arrow to numpy, column by column and without a Python object per number.

Arrow arrays are made from buffers. pa.array(), pa.scalar() and to_numpy() import pandas when it is
installed, which costs 0.3 s and 40 MB and gives nothing here.

Types: time is timestamp[us, UTC]; ids and cpu are int32; other ints int64; text is string; ints is
list<int32>.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

try:  # pyarrow.compute makes a function with a docstring of each of its kernels when it is imported: 50 ms
    from pyarrow._compute import SetLookupOptions, call_function
except ImportError:
    from pyarrow.compute import SetLookupOptions, call_function

from zombiescope._native import decode_blocks
from zombiescope.store import schema
from zombiescope.store.log import Block, EncodedBlock, Lists, Texts

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_INT32 = frozenset({"cpu", *schema.ID_KINDS})


def arrow_type(column: schema.Column) -> pa.DataType:
    if column.kind == "time":
        return pa.timestamp("us", tz="UTC")
    if column.kind == "text":
        return pa.string()
    if column.kind == "ints":
        return pa.list_(pa.int32())
    return pa.int32() if column.meaning in _INT32 else pa.int64()


def arrow_schema(table: schema.Table, columns: Iterable[str] | None = None) -> pa.Schema:
    return _arrow_schema(table, table.names if columns is None else tuple(columns))


@cache
def _arrow_schema(table: schema.Table, wanted: tuple[str, ...]) -> pa.Schema:
    kinds = {column.name: column for column in table.columns}
    unknown = [name for name in wanted if name not in kinds]
    if unknown:
        raise KeyError(f"table {table.name} has no column {', '.join(unknown)}; it has {', '.join(table.names)}")
    return pa.schema([(name, arrow_type(kinds[name])) for name in wanted])


def empty(table: schema.Table, columns: Iterable[str] | None = None) -> pa.Table:
    target = arrow_schema(table, columns)
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in target], schema=target)


# --- blocks to Arrow ------------------------------------------------------------------------------------


class Gathering:
    """Collects blocks of one table, cut to a window; gives them as one Arrow table in the order they came."""

    def __init__(
        self, table: schema.Table, columns: Iterable[str] | None, start_us: int | None, end_us: int | None
    ) -> None:
        self._table = table
        self._schema = arrow_schema(table, columns)
        self._kinds = {column.name: column.kind for column in table.columns}
        self._window = (start_us, end_us)
        self._pieces: dict[str, list[tuple[Any, int]]] = {name: [] for name in self._schema.names}
        self.rows = 0

    def add(self, block: Block) -> None:
        keep = _in_window(block, *self._window)
        rows = block.rows if keep is None else int(keep.sum())
        if rows == 0:
            return
        for name, pieces in self._pieces.items():
            values = block.columns[name]
            pieces.append((values if keep is None else _select(values, keep), rows))
        self.rows += rows

    def table(self) -> pa.Table:
        arrays = [arrow_array(self._kinds[field.name], field.type, self._pieces[field.name]) for field in self._schema]
        return pa.Table.from_arrays(arrays, schema=self._schema)


def decoded(table: schema.Table, blocks: Sequence[EncodedBlock], names: Sequence[str] | None = None) -> pa.Table:
    """All rows of some blocks of one table, in their order."""
    if any(block.stored is not table for block in blocks):  # written by an older version
        gathering = Gathering(table, names, None, None)
        for block in blocks:
            gathering.add(block.decode())
        return gathering.table()
    target = arrow_schema(table, names)
    numbers = tuple(table.names.index(name) for name in target.names)
    found = decode_blocks(table.kinds, numbers, [(block.body, block.rows, block.wall_us) for block in blocks])
    arrays = [
        _whole_array(table.columns[number].kind, field.type, *column)
        for number, field, column in zip(numbers, target, found, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=target)


def _whole_array(kind: str, type_: pa.DataType, values: array[int], measured: Any, there: bytearray | None) -> pa.Array:
    """A column of decode_blocks() as Arrow."""
    stored = np.frombuffer(values, np.int64)
    valid = None if there is None else np.frombuffer(there, bool)
    if kind not in ("text", "ints"):
        return ints_array(stored, valid, type_)
    offsets = np.zeros(len(stored) + 1, np.int32)
    np.cumsum(stored, out=offsets[1:])
    if kind == "ints":
        return lists_array(offsets, ints_array(np.frombuffer(measured, np.int64), None, pa.int32()), valid)
    # In ASCII every cut is between two characters, and every text is what it would be if it were decoded.
    if measured.isascii():
        buffers = [_validity(valid), pa.py_buffer(offsets), pa.py_buffer(measured)]
        return pa.Array.from_buffers(pa.string(), len(stored), buffers)
    known = [True] * len(stored) if valid is None else valid.tolist()
    spans = zip(offsets[:-1].tolist(), offsets[1:].tolist(), known, strict=True)
    return text_array([measured[a:b].decode("utf-8", "replace") if there_is else None for a, b, there_is in spans])


def _in_window(block: Block, start_us: int | None, end_us: int | None) -> Mask | None:
    """None when every row is in the window."""
    column = block.table.time_column
    if column is None or (start_us is None and end_us is None):
        return None
    times, valid = ints_of(block.columns[column], block.rows)
    keep = np.ones(block.rows, bool) if valid is None else valid.copy()
    if start_us is not None:
        keep &= times >= start_us
    if end_us is not None:
        keep &= times < end_us
    return None if keep.all() else keep


def _select(values: Any, keep: Mask) -> Any:
    if values is None:
        return None
    if isinstance(values, list | Lists | Texts):
        return list(compress(values, keep))
    return np.frombuffer(values, np.int64)[keep]


def ints_of(values: Any, rows: int) -> tuple[Ints, Mask | None]:
    """A column of a block as numbers, and which rows have one (None: all)."""
    if values is None:
        return np.zeros(rows, np.int64), np.zeros(rows, bool)
    if isinstance(values, list):
        valid = np.fromiter((value is not None for value in values), bool, rows)
        return np.fromiter((value or 0 for value in values), np.int64, rows), valid
    if isinstance(values, array):
        return np.frombuffer(values, np.int64), None
    return values, None


def arrow_array(kind: str, type_: pa.DataType, pieces: Sequence[tuple[Any, int]]) -> pa.Array:
    """Pieces of a column, as blocks hold them, as one Arrow array."""
    if kind == "text":
        return _texts_of(pieces)
    if kind == "ints":
        return _lists_of(pieces)
    numbers, valid = _join([ints_of(values, rows) for values, rows in pieces])
    return ints_array(numbers, valid, type_)


def _join(parts: list[tuple[Ints, Mask | None]]) -> tuple[Ints, Mask | None]:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return np.zeros(0, np.int64), None
    numbers = np.concatenate([part for part, _ in parts])
    if all(valid is None for _, valid in parts):
        return numbers, None
    return numbers, np.concatenate([np.ones(len(part), bool) if valid is None else valid for part, valid in parts])


def ints_array(numbers: Ints, valid: Mask | None, type_: pa.DataType) -> pa.Array:
    """An int or time column. A number that an int32 column cannot hold becomes null: no id is that large."""
    if type_ == pa.int32():
        fits = (numbers >= -(1 << 31)) & (numbers < 1 << 31)
        if not fits.all():
            valid = fits if valid is None else valid & fits
    stored = numbers.astype(np.int32) if type_ == pa.int32() else np.ascontiguousarray(numbers)
    values = pa.py_buffer(stored)
    return pa.Array.from_buffers(type_, len(numbers), [_validity(valid), values])


def text_array(texts: Sequence[str | None]) -> pa.Array:
    encoded = [b"" if text is None else text.encode("utf-8", "replace") for text in texts]
    valid = np.fromiter((text is not None for text in texts), bool, len(texts))
    buffers = [_validity(valid), pa.py_buffer(_offsets(encoded)), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def _texts_of(pieces: Sequence[tuple[Any, int]]) -> pa.Array:
    stored = [values for values, _ in pieces if isinstance(values, Texts)]
    data = b"".join(values.data for values in stored)
    # In ASCII every cut is between two characters, and every text is what it would be if it were decoded.
    if len(stored) != sum(values is not None for values, _ in pieces) or not data.isascii():
        return text_array([text for values, rows in pieces for text in (values or [None] * rows)])
    there = np.concatenate([np.zeros(0, bool), *(_rows_there(values, rows) for values, rows in pieces)])
    lengths = np.zeros(len(there), np.int32)
    lengths[there] = np.concatenate([np.zeros(0, np.int32), *(_lengths(values) for values in stored)])
    offsets = np.zeros(len(there) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [_validity(there), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(there), buffers)


def _rows_there(values: Texts | None, rows: int) -> Mask:
    if values is not None and values.present is None:
        return np.ones(rows, bool)
    there = np.zeros(rows, bool)
    if values is not None:
        there[values.present] = True
    return there


def _lengths(values: Texts) -> npt.NDArray[Any]:
    if isinstance(values.lengths, bytes):
        return np.frombuffer(values.lengths, np.uint8)
    return np.array(values.lengths, np.int32)


def _lists_of(pieces: Sequence[tuple[Any, int]]) -> pa.Array:
    if not all(isinstance(values, Lists) for values, _ in pieces):
        return _lists_array([numbers for values, rows in pieces for numbers in (values or [None] * rows)])
    lengths, _ = _join([ints_of(values.lengths, rows) for values, rows in pieces])
    flat, _ = _join([ints_of(values.flat, len(values.flat)) for values, _ in pieces])
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return lists_array(offsets, ints_array(flat, None, pa.int32()))


def _lists_array(lists: Sequence[Sequence[int] | None]) -> pa.Array:
    filled = [numbers if numbers is not None else () for numbers in lists]
    valid = np.fromiter((numbers is not None for numbers in lists), bool, len(lists))
    flat = array("q")
    for numbers in filled:
        flat.extend(numbers)
    elements = ints_array(np.frombuffer(flat, np.int64) if flat else np.zeros(0, np.int64), None, pa.int32())
    return lists_array(_offsets(filled), elements, valid)


def lists_array(offsets: npt.NDArray[np.int32], elements: pa.Array, valid: Mask | None = None) -> pa.Array:
    buffers = [_validity(valid), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(pa.list_(pa.int32()), len(offsets) - 1, buffers, children=[elements])


def _offsets(items: Sequence[Any]) -> npt.NDArray[np.int32]:
    offsets = np.zeros(len(items) + 1, np.int32)
    np.cumsum(np.fromiter((len(item) for item in items), np.int32, len(items)), out=offsets[1:])
    return offsets


def _validity(valid: Mask | None) -> pa.Buffer | None:
    if valid is None or valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


# --- Arrow to numpy -------------------------------------------------------------------------------------


def numbers(column: pa.ChunkedArray | pa.Array) -> Ints:
    """An int or time column as int64; what stands where there is no value is not defined."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [_chunk_numbers(chunk) for chunk in chunks]
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int64), *parts])


def _chunk_numbers(chunk: pa.Array) -> Ints:
    buffer = chunk.buffers()[1]
    if buffer is None:
        return np.zeros(len(chunk), np.int64)
    stored = np.frombuffer(buffer, np.int32 if chunk.type.bit_width == 32 else np.int64)
    return stored[chunk.offset : chunk.offset + len(chunk)].astype(np.int64, copy=False)


def present(column: pa.ChunkedArray | pa.Array) -> Mask:
    """Which rows have a value."""
    if column.null_count == 0:
        return np.ones(len(column), bool)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return np.concatenate([_chunk_present(chunk) for chunk in chunks])


def _chunk_present(chunk: pa.Array) -> Mask:
    bitmap = chunk.buffers()[0]
    if bitmap is None or chunk.null_count == 0:
        return np.ones(len(chunk), bool)
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
    return bits[chunk.offset : chunk.offset + len(chunk)].astype(bool)


def ids(column: pa.ChunkedArray | pa.Array) -> Ints:
    """An int column with -1 where there is no value."""
    stored = numbers(column)
    return stored if column.null_count == 0 else np.where(present(column), stored, -1)


def truths(column: pa.ChunkedArray | pa.Array) -> Mask:
    """A boolean column; where there is no value it is false."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return np.concatenate([np.zeros(0, bool), *(_chunk_truths(chunk) for chunk in chunks)])


def _chunk_truths(chunk: pa.Array) -> Mask:
    bitmap = chunk.buffers()[1]
    if bitmap is None:
        return np.zeros(len(chunk), bool)
    bits = np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little")
    return bits[chunk.offset : chunk.offset + len(chunk)].astype(bool) & _chunk_present(chunk)


def texts(column: pa.ChunkedArray | pa.Array) -> list[str | None]:
    values: list[str | None] = column.to_pylist()
    return values


def text_parts(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Strings as one run of bytes, and where each begins and ends in it; a string that is missing is empty."""
    chunk = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    _, offsets, data = chunk.buffers()
    places = np.zeros(1, np.int32) if offsets is None else np.frombuffer(offsets, np.int32)
    # An empty buffer cannot be viewed; one byte that nobody looks at can.
    text = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return places[chunk.offset : chunk.offset + len(chunk) + 1], text


def list_parts(chunk: pa.Array) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """A list array as offsets that start at 0, and its elements."""
    offsets = np.frombuffer(chunk.buffers()[1], np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
    return offsets - offsets[0], chunk.values.slice(offsets[0], offsets[-1] - offsets[0])


# --- rows ------------------------------------------------------------------------------------------------


def records(rows: pa.Table) -> list[dict[str, Any]]:
    """Few rows as dictionaries, times as Unix microseconds. (Table.to_pylist() imports pandas for times.)"""
    values = [_values(rows.column(name)) for name in rows.column_names]
    return [dict(zip(rows.column_names, row, strict=True)) for row in zip(*values, strict=True)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    if not pa.types.is_timestamp(column.type):
        values: list[Any] = column.to_pylist()
        return values
    return [time if known else None for time, known in zip(numbers(column).tolist(), present(column), strict=True)]


def take(rows: pa.Table, positions: Ints) -> pa.Table:
    return call_function("take", [rows, ints_array(positions, None, pa.int64())])


def among(rows: pa.Table, name: str, wanted: Iterable[str]) -> Ints:
    """Which rows have one of these texts in a column; no text becomes an object."""
    options = SetLookupOptions(value_set=text_array(sorted(wanted)))
    found = call_function("is_in", [rows.column(name)], options)
    # Not indices_nonzero(): pyarrow 20 to 25 crash on a column without chunks, as a table without rows may have.
    return np.flatnonzero(truths(found))


def cut(rows: pa.Table, time: str, start_us: int | None, end_us: int | None) -> pa.Table:
    """Only the rows in the window; a slice when they are in the order of time."""
    if len(rows) == 0 or (start_us is None and end_us is None):
        return rows
    times = numbers(rows.column(time))
    if bool(np.all(times[1:] >= times[:-1])):
        first = 0 if start_us is None else int(np.searchsorted(times, start_us, "left"))
        last = len(times) if end_us is None else int(np.searchsorted(times, end_us, "left"))
        return rows.slice(first, max(0, last - first))
    keep = np.ones(len(times), bool)
    if start_us is not None:
        keep &= times >= start_us
    if end_us is not None:
        keep &= times < end_us
    return take(rows, np.flatnonzero(keep))


def in_order_of_time(rows: pa.Table, column: str) -> pa.Table:
    """The rows sorted by time; rows of the same time stay in the order they were written."""
    times = numbers(rows.column(column))
    if bool(np.all(times[1:] >= times[:-1])):
        return rows
    return take(rows, np.argsort(times, kind="stable"))


def shifted(ids: pa.ChunkedArray | pa.Array, by: int, count: int) -> pa.ChunkedArray | None:
    """Ids (int32) with a number added to each, when all of them are there and below `count`; otherwise None."""
    chunks = ids.chunks if isinstance(ids, pa.ChunkedArray) else [ids]
    if ids.null_count or ids.type != pa.int32():
        return None
    moved = []
    for chunk in chunks:
        if not len(chunk):
            continue
        stored = np.frombuffer(chunk.buffers()[1], np.int32)[chunk.offset : chunk.offset + len(chunk)]
        if stored.min() < 0 or stored.max() >= count:
            return None
        moved.append(pa.Array.from_buffers(pa.int32(), len(stored), [None, pa.py_buffer(stored + np.int32(by))]))
    return pa.chunked_array(moved, pa.int32())


def look_up(new_ids: Ints, ids: pa.ChunkedArray | pa.Array) -> Ints:
    """new_ids[id] for each id; -1 where there is no id or no new one for it."""
    old = numbers(ids)
    known = (old >= 0) & (old < len(new_ids)) & present(ids)
    moved = np.full(len(old), -1, np.int64)
    moved[known] = new_ids[old[known]]
    return moved
