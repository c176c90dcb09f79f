"""Messages of a Connect RPC, declared once: protobuf and JSON in both directions follow from the declaration.

A message is a mapping of field names, as the protocol definition spells them. JSON takes and writes lowerCamelCase, and
int64 as text, as protobuf's JSON form does. Unknown fields are skipped; what is damaged ends the message.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zombiescope.base import json as _json
from zombiescope.base.errors import QuestionError
from zombiescope.query.exports.protobuf import fields, integer, message, packed, text, varint

DEEPEST = 4
FIX = "send what the protocol's definition declares"


@dataclass(frozen=True, slots=True)
class Wire:
    """A field: its number, its kind, and whether it repeats. `kind` is "string", "int", "double", or another shape."""

    number: int
    kind: str | Shape
    repeated: bool = False


Shape = Mapping[str, Wire]


def decoded(shape: Shape, payload: bytes, depth: int = 0) -> dict[str, Any]:
    """A protobuf message. Raises QuestionError."""
    if depth > DEEPEST:
        raise QuestionError("the message is nested too deeply", FIX)
    by_number = {wire.number: (name, wire) for name, wire in shape.items()}
    found: dict[str, Any] = {name: [] for name, wire in shape.items() if wire.repeated}
    for number, value in fields(payload):
        if number not in by_number:
            continue
        name, wire = by_number[number]
        read = _read(name, wire, value, depth)
        if wire.repeated:
            found[name].append(read)
        else:
            found[name] = read
    return found


def _read(name: str, wire: Wire, value: int | bytes, depth: int) -> Any:
    if wire.kind == "int" and isinstance(value, int):
        return value - (1 << 64) if value >> 63 else value
    if wire.kind == "double" and isinstance(value, bytes) and len(value) == 8:
        return struct.unpack("<d", value)[0]
    if wire.kind == "string" and isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if not isinstance(wire.kind, str) and isinstance(value, bytes):
        return decoded(wire.kind, value, depth + 1)
    raise QuestionError(f"{name} is not of the kind that the protocol declares", FIX)


def from_json(shape: Shape, payload: bytes) -> dict[str, Any]:
    """Raises QuestionError."""
    try:
        given = _json.loads(payload or b"{}")
    except ValueError:
        raise QuestionError("the message is not JSON", FIX) from None
    return _from_object(shape, given)


def _from_object(shape: Shape, given: object) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise QuestionError("the message is not an object", FIX)
    found: dict[str, Any] = {name: [] for name, wire in shape.items() if wire.repeated}
    for name, wire in shape.items():
        value = given.get(_camel(name), given.get(name))
        if value is None:
            continue
        if wire.repeated:
            if not isinstance(value, list):
                raise QuestionError(f"{name} is not a list", FIX)
            found[name] = [_of_json(name, wire, one) for one in value]
        else:
            found[name] = _of_json(name, wire, value)
    return found


def _of_json(name: str, wire: Wire, value: object) -> Any:
    try:
        if wire.kind == "int" and isinstance(value, int | str) and not isinstance(value, bool):
            return int(value)
        if wire.kind == "double" and isinstance(value, int | float | str) and not isinstance(value, bool):
            return float(value)
    except (ValueError, OverflowError):
        pass
    if wire.kind == "string" and isinstance(value, str):
        return value
    if not isinstance(wire.kind, str):
        return _from_object(wire.kind, value)
    raise QuestionError(f"{name} is not of the kind that the protocol declares", FIX)


def encoded(shape: Shape, found: Mapping[str, Any]) -> bytes:
    """As protobuf."""
    out = []
    for name, wire in shape.items():
        value = found.get(name)
        if value is None:
            continue
        if wire.repeated and wire.kind == "int":
            out.append(packed(wire.number, value))
        elif wire.repeated:
            out += [_field(wire, one) for one in value]
        else:
            out.append(_field(wire, value))
    return b"".join(out)


def _field(wire: Wire, value: Any) -> bytes:
    if wire.kind == "int":
        return integer(wire.number, value)
    if wire.kind == "double":
        return varint(wire.number << 3 | 1) + struct.pack("<d", value)
    if wire.kind == "string":
        return text(wire.number, value)
    assert not isinstance(wire.kind, str)
    return message(wire.number, encoded(wire.kind, value))


def as_json(shape: Shape, found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        _camel(name): [_json_of(wire, one) for one in found[name]] if wire.repeated else _json_of(wire, found[name])
        for name, wire in shape.items()
        if found.get(name) is not None
    }


def _json_of(wire: Wire, value: Any) -> Any:
    if wire.kind == "int":
        return str(value)
    return value if isinstance(wire.kind, str) else as_json(wire.kind, value)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)
