"""The append-only log: how the recorder's last minutes are on disk before they become Parquet.

A recording is written as *segments* of about two minutes, one file each. A segment needs no other file to be read.

    segment := "ZSCOPE1\\n"  frame(header JSON, not compressed)  frame ...
    frame   := u32 length   u32 crc32 of the payload   payload          (little endian)
    payload := the next piece of one zstd stream that runs through the segment, flushed at the frame's end
    body    := i64 wall_us   i64 monotonic_ns   block ...               (what a payload decompresses to)
    block   := u8 table number   varint rows   one column after the other, as schema.py lists them
    column  := u8 mode   data
               mode 0  no value in any row; no data
               mode 1  int, time: `rows` zigzag varints of differences (a time starts from wall_us, an int from 0)
                       text: `rows` varint byte lengths, then the bytes
                       ints: `rows` list lengths, then all elements, each run as an int column
               mode 2  as 1, preceded by a bitmap of ceil(rows/8) bytes; only rows whose bit is set have a value

The crash rule: a frame is written with one write() once a second and never changed. After `kill -9` the tail may hold a
part of a frame; a reader stops at the first frame that is short or fails its checksum and says how much it left. One
stream per segment (not per frame) makes frames of a few hundred bytes compress well; the price is that damage in the
middle of a segment hides the rest of that segment, two minutes at the most.

The last frame of a segment that was closed in order holds a block of table 0 with no rows.

A block has no length: it ends where its columns end. So the header says under `tables` what kinds of columns each table
has ({"16": "tiiiii"}, letters of schema.Table.kinds), and a reader of an older version, to which a table is new, skips
its blocks and says so in `unknown`. Of a segment whose header does not say it, the rest of such a frame is lost, and
nothing else. A table whose columns change gets a new number.

Whoever reads one need not trust it: lengths are compared with the file's before anything is read, and what a frame
decompresses and decodes to is counted before it is allocated (allowance.py).
"""

from __future__ import annotations

import json
import os
import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, BinaryIO, overload

import zstandard

from zombiescope._native import check_block, decode_ints, encode_ints
from zombiescope.base import json as _json
from zombiescope.store import newer, schema
from zombiescope.store.allowance import LOG_RATIO, TOTAL_FLOOR_BYTES, Allowance

MAGIC = b"ZSCOPE1\n"
MAX_FRAME_BYTES = 256 << 20
MAX_HEADER_BYTES = 1 << 20

_FRAME = struct.Struct("<II")
_CLOCK = struct.Struct("<qq")
_LEVEL = 3
_WINDOW_LOG = 17  # 128 kB of history: enough for the repetition from second to second, and the encoder stays small
_PIECE_BYTES = 512  # what is decompressed at once: four bytes can stand for 128 kB, so at most 16 MB come of it
_CELL_BYTES = 8
_TEXT_BYTES = 64


class DamagedError(ValueError):
    """The bytes are not what the format promises."""


class Lists(Sequence["array[int]"]):
    """A column of lists as it is on disk: a frame may bring thousands of stacks, and most readers want them flat."""

    __slots__ = ("_ends", "flat", "lengths")

    def __init__(self, lengths: array[int], flat: array[int]) -> None:
        self.lengths = lengths
        self.flat = flat
        self._ends: list[int] | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    @overload
    def __getitem__(self, row: int) -> array[int]: ...
    @overload
    def __getitem__(self, row: slice) -> list[array[int]]: ...
    def __getitem__(self, row: int | slice) -> array[int] | list[array[int]]:
        if isinstance(row, slice):
            return [self[at] for at in range(len(self))[row]]
        if self._ends is None:
            self._ends = list(accumulate(self.lengths))
        end = self._ends[row]
        return self.flat[end - self.lengths[row] : end]


class Texts(Sequence["str | None"]):
    """A column of texts as it is on disk: a segment brings thousands of names, and a table of them needs none as an
    object of its own. `present` are the rows that have one; None: all."""

    __slots__ = ("_decoded", "_rows", "data", "lengths", "present")

    def __init__(self, lengths: Sequence[int], data: bytes, present: list[int] | None = None, rows: int = 0) -> None:
        """`lengths` of those that are there; bytes, where none is longer than 127."""
        self.lengths = lengths
        self.data = data
        self.present = present
        self._rows = len(lengths) if present is None else rows
        self._decoded: list[str | None] | None = None

    def __len__(self) -> int:
        return self._rows

    @overload
    def __getitem__(self, row: int) -> str | None: ...
    @overload
    def __getitem__(self, row: slice) -> list[str | None]: ...
    def __getitem__(self, row: int | slice) -> str | list[str | None] | None:
        return self._texts()[row]

    def __iter__(self) -> Iterator[str | None]:
        return iter(self._texts())

    def _texts(self) -> list[str | None]:
        if self._decoded is None:
            ends = list(accumulate(self.lengths))
            bounds = zip([0, *ends], ends, strict=False)
            texts = [self.data[start:end].decode("utf-8", "replace") for start, end in bounds]
            self._decoded = [*texts] if self.present is None else _sparse(texts, self.present, self._rows)
        return self._decoded


def _sparse(values: Sequence[Any], present: Sequence[int], rows: int) -> list[Any]:
    sparse: list[Any] = [None] * rows
    for row, value in zip(present, values, strict=True):
        sparse[row] = value
    return sparse


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows of one table. A column is None (no value in any row), array('q'), Lists, Texts, or a list with None in
    it."""

    table: schema.Table
    rows: int
    columns: dict[str, Any]

    def column(self, name: str) -> Sequence[Any]:
        """The column as a sequence of `rows` values."""
        values = self.columns[name]
        return [None] * self.rows if values is None else values


@dataclass(frozen=True, slots=True)
class EncodedBlock:
    """A block as it is on disk, and known to be whole: a fraction of its size in memory, to be decoded whenever it is
    needed. `lowest` and `highest` are of its first column, which is a time or an id; 0 and -1 where no row has one."""

    stored: schema.Table
    rows: int
    wall_us: int
    body: bytes
    lowest: int
    highest: int

    def decode(self) -> Block:
        afforded = Allowance(sys.maxsize)  # once, when the frame was read
        return _decode_block(self.stored, self.body, 0, self.rows, self.wall_us, afforded)[0]


@dataclass(frozen=True, slots=True)
class LogFrame:
    wall_us: int
    monotonic_ns: int
    blocks: tuple[Block, ...]
    closes: bool
    encoded: tuple[EncodedBlock, ...] = ()
    """All blocks, where they were asked for in this form; `blocks` are none then."""
    unknown: frozenset[int] = frozenset()
    """Numbers of tables that only a newer version knows; their blocks are left out."""


# --- writing -----------------------------------------------------------------------------------------------------


def encode_rows(table: schema.Table, rows: Sequence[Sequence[Any]], wall_us: int) -> bytes:
    """A block from rows in the order of the table's columns."""
    return encode_columns(table, len(rows), list(zip(*rows, strict=True)), wall_us)


def encode_columns(table: schema.Table, rows: int, columns: Sequence[Any], wall_us: int) -> bytes:
    """A block from whole columns. A column may be None (no value in any row); one of kind `ints` may be a pair of
    array('q'): the lengths of its lists, and all their elements."""
    parts = [bytes((table.number,)), _varint(rows)]
    for column, values in zip(table.columns, columns, strict=True):
        parts.append(_encode_column(column.kind, values, wall_us))
    return b"".join(parts)


def _encode_column(kind: str, values: Sequence[Any] | None, wall_us: int) -> bytes:
    if values is None:
        return b"\0"
    if isinstance(values, tuple) and kind == "ints" and len(values) == 2 and isinstance(values[0], array):
        return b"".join((encode_ints(values[0], 0, b"\1"), encode_ints(values[1])))
    if isinstance(values, array):
        return encode_ints(values, wall_us if kind == "time" else 0, b"\1")
    present = [value for value in values if value is not None]
    if not present:
        return b"\0"
    mode = b"\1"
    if len(present) != len(values):
        mode = b"\2" + _bitmap(values)
    return mode + _encode_values(kind, present, wall_us)


def _encode_values(kind: str, values: list[Any], wall_us: int) -> bytes:
    if kind == "text":
        encoded = [value.encode("utf-8", "surrogateescape") for value in values]
        lengths = [len(text) for text in encoded]
        head = bytes(lengths) if max(lengths) < 0x80 else b"".join(map(_varint, lengths))  # most are one byte each
        return b"".join((head, *encoded))
    if kind == "ints":
        flat = [element for value in values for element in value]
        return encode_ints([len(value) for value in values]) + encode_ints(flat)
    return encode_ints(values, wall_us if kind == "time" else 0)


def _bitmap(values: Sequence[Any]) -> bytes:
    bits = bytearray((len(values) + 7) // 8)
    for row, value in enumerate(values):
        if value is not None:
            bits[row >> 3] |= 1 << (row & 7)
    return bytes(bits)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _frame(payload: bytes) -> bytes:
    return _FRAME.pack(len(payload), zlib.crc32(payload)) + payload


class SegmentEncoder:
    """Turns blocks into the bytes of one segment. It does no input or output: the caller decides when bytes are
    safe."""

    def __init__(self, header: dict[str, Any]) -> None:
        parameters = zstandard.ZstdCompressionParameters.from_level(_LEVEL, window_log=_WINDOW_LOG)
        self._stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
        complete = {**header, newer.TABLES: newer.described()}
        self.preamble = MAGIC + _frame(json.dumps(complete, separators=(",", ":")).encode())

    def frame(self, wall_us: int, monotonic_ns: int, blocks: Iterable[bytes], *, closes: bool = False) -> bytes:
        """The bytes of the next frame; frames must reach the file in the order they were made."""
        body = b"".join((_CLOCK.pack(wall_us, monotonic_ns), *blocks, b"\0\0" if closes else b""))
        payload = self._stream.compress(body) + self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        return _frame(payload)


# --- reading -----------------------------------------------------------------------------------------------------


class SegmentReader:
    """Reads the frames of one segment as far as they are whole; can be asked again for what was appended since."""

    def __init__(self, file: BinaryIO, floor_bytes: int = TOTAL_FLOOR_BYTES) -> None:
        """`floor_bytes`: what may come out of it however small it is. Raises DamagedError."""
        self._file = file
        self._allowance = Allowance(floor_bytes)
        self._stream = zstandard.ZstdDecompressor(max_window_size=1 << _WINDOW_LOG).decompressobj()
        self._position = 0
        self.damage: str | None = None
        self.closed = False
        self.unknown: frozenset[int] = frozenset()
        """Numbers of tables that were left out so far: a newer version wrote them."""
        self.header = self._read_header()
        self._newer = newer.tables(self.header)

    @property
    def left_out(self) -> str | None:
        """For people: which tables were left out so far, and what to do; None where nothing was."""
        strange = newer.what(self.unknown)
        return None if strange is None else f"{strange}: update zombiescope to read it"

    def _read_header(self) -> dict[str, Any]:
        if self._file.read(len(MAGIC)) != MAGIC:
            raise DamagedError("not a zombiescope segment")
        self._position = len(MAGIC)
        payload = self._next_payload()
        if payload is None:
            raise DamagedError(self.damage or "the segment ends inside its header")
        if len(payload) > MAX_HEADER_BYTES:
            raise DamagedError(f"its header has {len(payload)} bytes")
        try:
            header = _json.loads(payload)
        except ValueError as error:
            raise DamagedError(f"its header cannot be read: {error}") from error
        if not isinstance(header, dict):
            raise DamagedError("the header is not an object")
        return header

    @property
    def position(self) -> int:
        """Bytes read so far as whole frames."""
        return self._position

    def frames(self, *, encoded: bool = False) -> Iterator[LogFrame]:
        """Every whole frame not yet given. Sets `damage` when a frame is there but wrong, and then gives no more.
        `encoded`: blocks are checked, and stay as they are on disk."""
        while self.damage is None and not self.closed:
            payload = self._next_payload()
            if payload is None:
                return
            try:
                self._allowance.earn(len(payload), LOG_RATIO)
                frame = decode_frame(self._unpacked(payload), self._allowance, encoded=encoded, strange=self._newer)
            except (DamagedError, ValueError, UnicodeDecodeError, zstandard.ZstdError) as error:
                self.damage = f"frame at byte {self._position - len(payload)}: {error}"
                return
            self.closed = frame.closes
            self.unknown |= frame.unknown
            yield frame

    def _unpacked(self, payload: bytes) -> bytes:
        pieces = []
        for start in range(0, len(payload), _PIECE_BYTES):
            piece = self._stream.decompress(payload[start : start + _PIECE_BYTES])
            self._allowance.spend(len(piece))
            pieces.append(piece)
        return b"".join(pieces)

    def _next_payload(self) -> bytes | None:
        size = self._file.seek(0, os.SEEK_END)
        self._file.seek(self._position)
        head = self._file.read(_FRAME.size)
        if len(head) < _FRAME.size:
            return None
        length, checksum = _FRAME.unpack(head)
        if length > MAX_FRAME_BYTES:
            self.damage = f"frame at byte {self._position} claims {length} bytes"
            return None
        if length > size - self._position - _FRAME.size:
            return None  # before a buffer of that length is made
        payload = self._file.read(length)
        if len(payload) < length:
            return None
        if zlib.crc32(payload) != checksum:
            self.damage = f"frame at byte {self._position} fails its checksum"
            return None
        self._position += _FRAME.size + length
        return payload


def decode_frame(
    body: bytes,
    allowance: Allowance | None = None,
    *,
    encoded: bool = False,
    strange: Mapping[int, bytes] | None = None,
) -> LogFrame:
    """A frame from its decompressed body, within what a reader may allocate. `strange`: the kinds of columns of
    tables that this version does not know. Raises DamagedError and TooMuchError."""
    allowance = Allowance() if allowance is None else allowance
    if len(body) < _CLOCK.size:
        raise DamagedError("body shorter than its clock")
    wall_us, monotonic_ns = _CLOCK.unpack_from(body)
    offset = _CLOCK.size
    blocks: list[Block] = []
    kept: list[EncodedBlock] = []
    closes = False
    unknown = set()
    while offset < len(body):
        number = body[offset]
        rows, offset = _read_varint(body, offset + 1)
        if number == 0:
            closes = True
            continue
        stored = newer.known(number)
        if stored is None:
            unknown.add(number)
            kinds = (strange or {}).get(number)
            if kinds is None:
                break
            allowance.spend(rows * len(kinds) * _CELL_BYTES)
            offset, *_ = check_block(kinds, body, offset, rows, wall_us)
        elif encoded:
            whole, offset = _whole_block(stored, body, offset, rows, wall_us, allowance)
            kept.append(whole)
        else:
            block, offset = _decode_block(stored, body, offset, rows, wall_us, allowance)
            blocks.append(block)
    return LogFrame(wall_us, monotonic_ns, tuple(blocks), closes, tuple(kept), frozenset(unknown))


def _whole_block(
    stored: schema.Table, body: bytes, offset: int, rows: int, wall_us: int, allowance: Allowance
) -> tuple[EncodedBlock, int]:
    """As it is, where that is a block; what it will take to decode it is paid for now."""
    allowance.spend(rows * len(stored.columns) * _CELL_BYTES)
    end, texts, elements, lowest, highest = check_block(stored.kinds, body, offset, rows, wall_us)
    allowance.spend(texts * _TEXT_BYTES + elements * _CELL_BYTES)
    return EncodedBlock(stored, rows, wall_us, body[offset:end], lowest, highest), end


def _decode_block(
    stored: schema.Table, body: bytes, offset: int, rows: int, wall_us: int, allowance: Allowance
) -> tuple[Block, int]:
    # Columns without values take no bytes of the file, and as much memory as the others once they are read.
    allowance.spend(rows * len(stored.columns) * _CELL_BYTES)
    table = schema.BY_NAME[stored.name]
    columns: dict[str, Any] = dict.fromkeys(table.names)
    for column in stored.columns:
        columns[column.name], offset = _decode_column(column.kind, body, offset, rows, wall_us, allowance)
    return Block(table, rows, columns), offset


def _decode_column(
    kind: str, body: bytes, offset: int, rows: int, wall_us: int, allowance: Allowance
) -> tuple[Any, int]:
    if offset >= len(body):
        raise DamagedError("block cut short")
    mode = body[offset]
    offset += 1
    if mode == 0:
        return None, offset
    if mode == 1:
        return _decode_values(kind, body, offset, rows, wall_us, allowance)
    if mode != 2:
        raise DamagedError(f"column mode {mode}")
    end = offset + (rows + 7) // 8
    bitmap = body[offset:end]
    if len(bitmap) != (rows + 7) // 8:
        raise DamagedError("bitmap cut short")
    present = [row for row in range(rows) if bitmap[row >> 3] >> (row & 7) & 1]
    values, offset = _decode_values(kind, body, end, len(present), wall_us, allowance)
    if isinstance(values, Texts):
        return Texts(values.lengths, values.data, present, rows), offset
    return _sparse(values, present, rows), offset


def _decode_values(
    kind: str, body: bytes, offset: int, count: int, wall_us: int, allowance: Allowance
) -> tuple[Any, int]:
    if kind == "text":
        allowance.spend(count * _TEXT_BYTES)
        return _decode_texts(body, offset, count)
    if kind == "ints":
        lengths, offset = decode_ints(body, offset, count)
        if count and min(lengths) < 0:
            raise DamagedError("list of negative length")
        elements = sum(lengths)
        if elements > len(body) - offset:
            raise DamagedError("more elements than bytes")
        allowance.spend(elements * _CELL_BYTES)
        flat, offset = decode_ints(body, offset, elements)
        return Lists(lengths, flat), offset
    return decode_ints(body, offset, count, wall_us if kind == "time" else 0)


def _decode_texts(body: bytes, offset: int, count: int) -> tuple[Texts, int]:
    if count > len(body) - offset:
        raise DamagedError("more strings than bytes")
    head = body[offset : offset + count]
    # Where no byte has its highest bit, each is one length: no text is longer than 127.
    lengths, offset = (head, offset + count) if head.isascii() else _read_varints(body, offset, count)
    end = offset + sum(lengths)
    if end > len(body):
        raise DamagedError("strings cut short")
    return Texts(lengths, body[offset:end]), end


def _read_varints(body: bytes, offset: int, count: int) -> tuple[Sequence[int], int]:
    values = []
    for _ in range(count):
        value, offset = _read_varint(body, offset)
        values.append(value)
    return values, offset


def _read_varint(body: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while offset < len(body) and shift < 64:
        byte = body[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
        shift += 7
    raise DamagedError("number cut short")
