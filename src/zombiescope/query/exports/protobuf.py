"""The wire format of protocol buffers, as much of it as profiles need: varints, fixed64, strings, messages.

Every function answers the bytes of one field, key included. A field with its default value is left out, as proto3 does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_VARINT, _FIXED64, _LENGTH = 0, 1, 2


def varint(value: int) -> bytes:
    """An unsigned number; a negative one as its 64-bit two's complement, which is how int64 is written."""
    if 0 <= value < 0x80:
        return _SMALL[value]
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL = tuple(bytes((value,)) for value in range(0x80))


def integer(field: int, value: int) -> bytes:
    """int32, int64, uint64, bool."""
    return varint(field << 3 | _VARINT) + varint(value) if value else b""


def fixed64(field: int, value: int) -> bytes:
    return varint(field << 3 | _FIXED64) + value.to_bytes(8, "little") if value else b""


def message(field: int, payload: bytes) -> bytes:
    """A message, or what is written like one: bytes and packed numbers. An empty one is written too."""
    return varint(field << 3 | _LENGTH) + varint(len(payload)) + payload


def text(field: int, value: str) -> bytes:
    """An element of a table of strings, so an empty one is written too."""
    return message(field, value.encode("utf-8", "replace"))


def packed(field: int, values: Iterable[int]) -> bytes:
    payload = b"".join(map(varint, values))
    return message(field, payload) if payload else b""


def fields(payload: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a small message, in their order: numbers of varints, bytes of everything else. What is cut off or
    is no message at all ends the walk."""
    at = 0
    while at < len(payload):
        key, at = _read_varint(payload, at)
        if key & 7 == _VARINT:
            value, at = _read_varint(payload, at)
            yield key >> 3, value
            continue
        size = {_FIXED64: 8, 5: 4}.get(key & 7)
        if key & 7 == _LENGTH:
            size, at = _read_varint(payload, at)
        if size is None or at + size > len(payload):
            return
        yield key >> 3, payload[at : at + size]
        at += size


def _read_varint(payload: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(payload):
        byte = payload[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return value, at
