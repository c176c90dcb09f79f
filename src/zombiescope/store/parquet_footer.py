"""The footer of a Parquet file, walked before Arrow believes it.

Whoever has a recording did not always make it, and a directory that was unpacked is its reader's own: so this is done
for every file, whoever owns it. Arrow makes room for as many columns as a footer says that there are, before it reads
one: a hundred bytes cost 650 MB. It reads what stands there about one column when it is asked for that column, and
where this contradicts the schema it throws through Python: the process is ended, not the call. Both are looked for
here first (Thrift, compact protocol): lists that are longer than the footer, more columns than any recording has,
columns that are encrypted, more or fewer of them than the schema has or of another type, and counts by level
(size_statistics) of another length than the column's levels.

It takes 4.6 ms of CPU for the fifteen files of a part, where reading all that is in them takes 25 ms. A diagnosis
reads some files twenty times, so a Recording keeps the last that it checked (Footers).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    import pyarrow.parquet as pq

MAGIC = b"PAR1"
MOST_BYTES = 2 << 20
"""Of a footer. The widest table that is written, with as many row groups as a part can have, takes a tenth of it."""
MOST_COLUMNS = 1024
MOST_STRUCTURES = 1 << 16
"""In lists, all together: Arrow has some hundred bytes for each, whatever it holds."""
MOST_KEPT = 64
"""The tables of four parts. A footer takes some ten kilobytes in memory."""
_MAX_DEPTH = 24
_MOST_FIELD = 0x7FFF
_SCHEMA, _ROW_GROUPS, _COLUMNS, _META_DATA, _SIZE_STATISTICS = 2, 4, 1, 3, 16
_ENCRYPTED = frozenset({8, 9})
_REPETITIONS, _DEFINITIONS = 2, 3
_TYPE = 1
_TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
"""As Parquet numbers them."""
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12

Wanted = dict[int, "Wanted"]
_COLUMN: Wanted = {_META_DATA: {_TYPE: {}, _SIZE_STATISTICS: {_REPETITIONS: {}, _DEFINITIONS: {}}}, 8: {}, 9: {}}
_FILE: Wanted = {_SCHEMA: {}, _ROW_GROUPS: {_COLUMNS: _COLUMN}}


@dataclass(frozen=True, slots=True)
class Footer:
    """What it says that Arrow would take for granted."""

    groups: list[list[object]]
    """The column chunks of each row group."""

    def check(self, metadata: pq.FileMetaData) -> None:
        """Against the schema as Arrow understands it. Raises ValueError where Arrow would end the process."""
        schema = metadata.schema
        columns = [schema.column(number) for number in range(metadata.num_columns)]
        known = [(one.physical_type, one.max_repetition_level, one.max_definition_level) for one in columns]
        for chunks in self.groups:
            if len(chunks) != len(known):
                raise ValueError("a row group has other columns than its schema")
            for chunk, (kind, repetition, definition) in zip(chunks, known, strict=True):
                _check_chunk(_fields(chunk), kind, repetition, definition)


def metadata(file: BinaryIO) -> pq.FileMetaData:
    """What Arrow reads of a file, if it may be asked. Raises ValueError, OSError, pa.ArrowException."""
    import pyarrow.parquet as pq  # 30 ms, and a node's last minutes are no Parquet yet

    footer = walk(file)
    file.seek(0)
    found = pq.read_metadata(file)
    footer.check(found)
    file.seek(0)
    return found


class Footers:
    """The last ones that were checked, of files that are written once and never changed."""

    def __init__(self) -> None:
        self._checked: dict[tuple[str, int], pq.FileMetaData] = {}

    def of(self, name: str, file: BinaryIO) -> pq.FileMetaData:
        """As `metadata`."""
        key = (name, file.seek(0, os.SEEK_END))
        file.seek(0)
        found = self._checked.pop(key, None) or metadata(file)
        self._checked[key] = found  # the last is the one that was used last
        for oldest in list(self._checked)[:-MOST_KEPT]:
            self._checked.pop(oldest, None)  # another thread may have
        return found


def walk(file: BinaryIO) -> Footer:
    """Before Arrow sees the file. Raises ValueError where it would ask for more memory than a footer can be worth."""
    size = file.seek(0, os.SEEK_END)
    if size < 12:
        raise ValueError("it is too short for a Parquet file")
    file.seek(size - 8)
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC:
        raise ValueError("it does not end as a Parquet file does")
    if length > min(size - 12, MOST_BYTES):
        raise ValueError("its footer is larger than that of any recording, or than the file")
    file.seek(size - 8 - length)
    return _walked(file.read(length))


def _walked(data: bytes) -> Footer:
    try:
        found, _ = _Walk(data).struct(0, _FILE, 0)
    except IndexError:
        raise ValueError("its footer ends early") from None
    if len(_items(found, _SCHEMA)) > MOST_COLUMNS:
        raise ValueError("it has more columns than any recording")
    return Footer([_items(_fields(group), _COLUMNS) for group in _items(found, _ROW_GROUPS)])


def _check_chunk(chunk: dict[int, object], kind: str, repetition: int, definition: int) -> None:
    if _ENCRYPTED & chunk.keys():
        raise ValueError("a column is encrypted")
    about = _fields(chunk.get(_META_DATA))
    if about.get(_TYPE) != 2 * _TYPES.index(kind):  # a number with a sign, which Thrift keeps in the lowest bit
        raise ValueError("a column is of another type than its schema says")
    sizes = _fields(about.get(_SIZE_STATISTICS, {}))
    for field, level in ((_REPETITIONS, repetition), (_DEFINITIONS, definition)):
        if len(_items(sizes, field)) not in (0, level + 1):
            raise ValueError("its counts by level do not fit its schema")


def _fields(value: object) -> dict[int, object]:
    if not isinstance(value, dict):
        raise ValueError("its footer is of another form")
    return value


def _items(fields: dict[int, object], field: int) -> list[object]:
    value = fields.get(field, [])
    if not isinstance(value, list):
        raise ValueError("its footer is of another form")
    return value


class _Walk:
    """Through Thrift's compact protocol. What is not wanted is passed over; what cannot be there is a ValueError, or an
    IndexError at the end of the bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._structures = 0

    def struct(self, at: int, wanted: Wanted, depth: int) -> tuple[dict[int, object], int]:
        """The fields that are wanted, and where the structure ends."""
        data = self._data
        found: dict[int, object] = {}
        field = 0
        while head := data[at]:
            at += 1
            if head >> 4:
                field += head >> 4
            else:
                number, at = self._varint(at)
                field = (number >> 1) ^ -(number & 1)
            if not 0 < field <= _MOST_FIELD:  # Arrow keeps sixteen bits of it, which may be another field's
                raise ValueError("its footer has a field that no footer has")
            value, at = self._value(at, head & 15, wanted.get(field), depth, in_list=False)
            if field in wanted:
                if field in found:
                    raise ValueError("its footer says something twice")
                found[field] = value
        return found, at + 1

    def _value(self, at: int, kind: int, wanted: Wanted | None, depth: int, *, in_list: bool) -> tuple[object, int]:
        if kind in (_TRUE, _FALSE):
            return None, at + in_list
        if kind == _BYTE:
            return None, at + 1
        if kind < _DOUBLE:
            return self._varint(at)
        if kind == _DOUBLE:
            return None, at + 8
        if kind == _BINARY:
            length, at = self._varint(at)
            return None, at + length
        if depth > _MAX_DEPTH:
            raise ValueError("its footer is nested too deeply")
        if kind in (_LIST, _SET):
            return self._list(at, wanted, depth)
        if kind == _STRUCT:
            return self.struct(at, wanted or {}, depth + 1)
        raise ValueError("its footer holds what no footer has")

    def _list(self, at: int, wanted: Wanted | None, depth: int) -> tuple[list[object], int]:
        kind, count = self._data[at] & 15, self._data[at] >> 4
        at += 1
        if count == 15:
            count, at = self._varint(at)
        self._allow(kind, count, at)
        found = []
        for _ in range(count):
            value, at = self._value(at, kind, wanted, depth + 1, in_list=True)
            if wanted is not None:
                found.append(value)
        return found, at

    def _allow(self, kind: int, count: int, at: int) -> None:
        """Every element takes a byte at least, and a structure takes Arrow many."""
        if count > len(self._data) - at:
            raise ValueError("its footer has a list that is longer than the footer")
        if kind == _STRUCT:
            self._structures += count
        if self._structures > MOST_STRUCTURES:
            raise ValueError("its footer has more in it than that of any recording")

    def _varint(self, at: int) -> tuple[int, int]:
        data = self._data
        value = shift = 0
        while True:
            byte = data[at]
            value |= (byte & 0x7F) << shift
            at += 1
            if byte < 0x80:
                return value, at
            shift += 7
            if shift > 70:
                raise ValueError("its footer holds a number that is too long")
