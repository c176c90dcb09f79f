"""A code object of another process: its qualified name, its file, and the line of each of its instructions.

Lines are in co_linetable, in the form that 3.11 introduced: an entry covers up to eight code units, its first byte has
the high bit set, a kind and a length; depending on the kind a difference of the line follows.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass

from zombiescope.symbols.python.memory import Memory, StrangeError
from zombiescope.symbols.python.offsets import Offsets

MOST_TEXT = 400
"""Characters of a name or a path."""
MOST_TABLE = 1 << 16
"""Bytes of a table of lines: the largest functions of the standard library have 10,000."""
MOST_LINE = 10_000_000
_NO_LOCATION, _LONG, _NO_COLUMNS, _ONE_LINE = 15, 14, 13, 10


@dataclass(frozen=True, slots=True)
class Code:
    name: str
    file: str
    first_line: int
    starts: tuple[int, ...]
    """Code units at which another line begins; and those lines."""
    lines: tuple[int, ...]
    units: int
    """How many code units it has."""

    def line(self, unit: int) -> int:
        """Of an instruction; the first line for one that has none. Raises StrangeError."""
        if not -1 <= unit <= self.units:
            raise StrangeError("an instruction of another function")
        at = bisect_right(self.starts, unit) - 1
        found = self.lines[at] if at >= 0 else 0
        return found or self.first_line


def read(memory: Memory, offsets: Offsets, header: bytes) -> Code:
    """`header` is the beginning of the object. Raises StrangeError, OSError."""
    name, file, table = (
        struct.unpack_from("<Q", header, at)[0] for at in (offsets.code_name, offsets.code_file, offsets.code_lines)
    )
    (first,) = struct.unpack_from("<i", header, offsets.code_first_line)
    if not 0 <= first <= MOST_LINE:
        raise StrangeError(f"first line {first}")
    starts, lines, units = parse_lines(_bytes(memory, offsets, table), first)
    return Code(_text(memory, offsets, name), _text(memory, offsets, file), first, starts, lines, units)


def _text(memory: Memory, offsets: Offsets, address: int) -> str:
    head = memory.read(address, max(offsets.text_length, offsets.text_state) + 8)
    (length,) = struct.unpack_from("<q", head, offsets.text_length)
    (state,) = struct.unpack_from("<I", head, offsets.text_state)
    kind, is_compact, is_ascii = state >> 2 & 7, state >> 5 & 1, state >> 6 & 1
    if length < 0 or kind not in (1, 2, 4) or not is_compact:
        raise StrangeError("no text")
    if not length:
        return ""
    kept = min(length, MOST_TEXT)
    data = memory.read(address + (offsets.text_ascii if is_ascii else offsets.text_compact), kept * kind)
    text = data.decode({1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}[kind], "replace")
    return text if length == kept else f"{text}..."


def _bytes(memory: Memory, offsets: Offsets, address: int) -> bytes:
    (size,) = struct.unpack("<q", memory.read(address + offsets.bytes_size, 8))
    if not 0 <= size <= MOST_TABLE:
        raise StrangeError(f"a table of {size} bytes")
    return memory.read(address + offsets.bytes_data, size) if size else b""


def parse_lines(table: bytes, first_line: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Where each line begins, in code units; which it is (0: none); how many units there are. Raises StrangeError."""
    starts: list[int] = []
    lines: list[int] = []
    line, unit, at = first_line, 0, 0
    while at < len(table):
        head = table[at]
        if not head & 0x80:
            raise StrangeError("no entry in the table of lines")
        kind, at = head >> 3 & 15, at + 1
        if kind in (_NO_COLUMNS, _LONG):
            change, at = _signed(table, at)
            line += change
        elif _ONE_LINE <= kind < _NO_COLUMNS:
            line += kind - _ONE_LINE
        while at < len(table) and not table[at] & 0x80:
            at += 1
        if abs(line) > MOST_LINE:
            raise StrangeError(f"line {line}")
        said = 0 if kind == _NO_LOCATION else line
        if not lines or lines[-1] != said:
            starts.append(unit)
            lines.append(max(said, 0))
        unit += (head & 7) + 1
    return tuple(starts), tuple(lines), unit


def _signed(table: bytes, at: int) -> tuple[int, int]:
    """A number of six bits a byte, least first; bit 6 says that more follow, the lowest bit is its sign."""
    value = shift = 0
    while True:
        if at >= len(table) or shift > 30:
            raise StrangeError("a number without an end in the table of lines")
        byte = table[at]
        value |= (byte & 63) << shift
        at, shift = at + 1, shift + 6
        if not byte & 64:
            return (-(value >> 1) if value & 1 else value >> 1), at
