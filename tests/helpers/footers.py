"""Footers of Parquet files that no writer makes, in Thrift's compact protocol: what a stranger can send.

A structure is a dictionary of field number -> (kind, value); a list is (kind of its items, items), or with a third
member that lies about how many there are.
"""

from __future__ import annotations

import struct
from typing import Any

TRUE, I32, I64, BINARY, LIST, STRUCT = 1, 5, 6, 8, 9, 12
INT64, BYTE_ARRAY = 2, 6
LIE = 900_000
Fields = dict[int, tuple[int, Any]]


def file(footer: bytes, body: bytes = bytes(64)) -> bytes:
    return b"PAR1" + body + footer + struct.pack("<I", len(footer)) + b"PAR1"


def structure(fields: Fields) -> bytes:
    out, last = b"", 0
    for number, (kind, value) in fields.items():
        step = number - last
        out += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + _zigzag(number)
        out += _value(kind, value)
        last = number
    return out + b"\0"


def _value(kind: int, value: Any) -> bytes:
    if kind in (I32, I64):
        return _zigzag(value)
    if kind == BINARY:
        return _varint(len(value)) + bytes(value)
    if kind == STRUCT:
        return structure(value)
    if kind == LIST:
        of, items, *lie = value
        count = lie[0] if lie else len(items)
        head = bytes([count << 4 | of]) if count < 15 else bytes([0xF0 | of]) + _varint(count)
        return head + b"".join(_value(of, item) for item in items)
    return b""


def _zigzag(number: int) -> bytes:
    return _varint(2 * number if number >= 0 else -2 * number - 1)


def _varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def element(name: bytes, kind: int | None = None, children: int | None = None) -> Fields:
    """Of the schema: a column, or a group of those that follow."""
    fields: Fields = {} if kind is None else {1: (I32, kind)}
    fields |= {3: (I32, 0), 4: (BINARY, name)}
    return fields if children is None else fields | {5: (I32, children)}


def chunk(**changes: tuple[int, Any]) -> Fields:
    """A column of a row group; `m16=...` is field 16 of its metadata, `f8=...` field 8 of itself."""
    described: Fields = {
        1: (I32, INT64), 2: (LIST, (I32, [0])), 3: (LIST, (BINARY, [b"at"])), 4: (I32, 0),
        5: (I64, 1), 6: (I64, 20), 7: (I64, 20), 9: (I64, 4),
    }  # fmt: skip
    described |= {int(name[1:]): value for name, value in changes.items() if name[0] == "m"}
    own: Fields = {2: (I64, 0), 3: (STRUCT, described)}
    return own | {int(name[1:]): value for name, value in changes.items() if name[0] == "f"}


def group(chunks: list[Fields], *lie: int) -> Fields:
    return {1: (LIST, (STRUCT, chunks, *lie)), 2: (I64, 20), 3: (I64, 1)}


SCHEMA = [element(b"schema", children=1), element(b"at", INT64)]


def footer(schema: list[Fields] | None = None, groups: list[Fields] | None = None, more: Fields | None = None) -> bytes:
    fields: Fields = {
        1: (I32, 1), 2: (LIST, (STRUCT, SCHEMA if schema is None else schema)), 3: (I64, 1),
        4: (LIST, (STRUCT, [group([chunk()])] if groups is None else groups)),
    }  # fmt: skip
    return structure(fields | (more or {}))


def hostile() -> dict[str, bytes]:
    """By what is wrong with it, the footer. Each ends a process that gives it to Arrow, or costs it 100 MB and more."""
    counts: Fields = {2: (LIST, (I64, [1, 2, 3])), 3: (LIST, (I64, [1, 2, 3]))}
    wide = [element(b"schema", children=60_000), *[element(b"at", INT64)] * 60_000]
    hidden = structure({1: (I32, 1), 2: (LIST, (STRUCT, SCHEMA)), 3: (I64, 1), 65540: (LIST, (STRUCT, [], LIE))})
    return {
        "two columns where the schema has one": footer(groups=[group([chunk(), chunk()])]),
        "counts by level": footer(groups=[group([chunk(m16=(STRUCT, counts))])]),
        "a list of columns longer than the file": footer(groups=[group([], LIE)]),
        "a list of columns without anything in them": footer(groups=[group([{}] * 200_000)]),
        "a schema longer than the file": structure({1: (I32, 1), 2: (LIST, (STRUCT, [], LIE)), 3: (I64, 1)}),
        "row groups of which there are none": footer(groups=[], more={4: (LIST, (STRUCT, [], LIE))}),
        "row groups under a number that is cut to another": hidden,
        "as many columns as fit": footer(wide, []),
    }
