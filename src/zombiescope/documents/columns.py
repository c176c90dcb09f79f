"""Heavy answers as typed arrays in one block of bytes, which a browser views without parsing.

    bytes "ZSC1", u32 (little-endian) length of the header, the header as JSON, then the arrays one after another

The header says {"schema", ...scalars, "arrays": [{"name", "type", "length"}, ...]} in the order of the arrays. It is
padded with spaces so that the data starts at a multiple of 8, and so does each array.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from zombiescope.query.stacks import Function
from zombiescope.store.columns import Ints

MEDIA_TYPE = "application/vnd.zombiescope.columns"
MAGIC = b"ZSC1"
_TYPES = {"u1": "u8", "u2": "u16", "u4": "u32", "i4": "i32", "f4": "f32", "f8": "f64"}
_ALIGN = 8


@dataclass(frozen=True, slots=True)
class Columns:
    """`what` is the name in the schema: "strip" makes "zombiescope.strip/1"."""

    what: str
    scalars: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    def encoded(self) -> bytes:
        pieces = [_little(array) for array in self.arrays.values()]
        described = [
            {"name": name, "type": _TYPES[piece.dtype.str[1:]], "length": piece.size}
            for name, piece in zip(self.arrays, pieces, strict=True)
        ]
        header = json.dumps(
            {"schema": f"zombiescope.{self.what}/1", **self.scalars, "arrays": described},
            allow_nan=False,
            separators=(",", ":"),
        ).encode()
        header += b" " * (-(len(MAGIC) + 4 + len(header)) % _ALIGN)
        out = [MAGIC, struct.pack("<I", len(header)), header]
        for piece in pieces:
            out += [piece.tobytes(), b"\0" * (-piece.nbytes % _ALIGN)]
        return b"".join(out)


def _little(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.astype(flat.dtype.newbyteorder("<"), copy=False)


def decoded(data: bytes) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Header and arrays: what a reader in another language does. Raises ValueError."""
    if data[:4] != MAGIC or len(data) < 8:
        raise ValueError("these bytes are not columns")
    (length,) = struct.unpack_from("<I", data, 4)
    header: dict[str, Any] = json.loads(data[8 : 8 + length])
    kinds = {name: code for code, name in _TYPES.items()}
    at = 8 + length
    arrays = {}
    for entry in header["arrays"]:
        kind = np.dtype(f"<{kinds[entry['type']]}")
        arrays[entry["name"]] = np.frombuffer(data, kind, entry["length"], at)
        at += -(-entry["length"] * kind.itemsize // _ALIGN) * _ALIGN
    return header, arrays


# --- function table ---------------------------------------------------------------------------------------------------
# Functions as small tables of names, modules and kinds, and for each node its place in them.

NONE = 0xFFFF_FFFF
"""The module of a function that has none."""


class FunctionTable:
    """`function` are numbers of functions; only those that are among them are named."""

    def __init__(self, functions: Sequence[Function], function: Ints) -> None:
        used, place = np.unique(function, return_inverse=True)
        known = [functions[number] for number in used.tolist()]
        names, self.names = _numbered([each.name for each in known])
        modules, self.modules = _numbered([each.module for each in known])
        kinds, self.kinds = _numbered([each.kind for each in known])
        self.name = names[place].astype(np.uint32)
        self.module = modules[place].astype(np.uint32)
        self.kind = kinds[place].astype(np.uint8)


def _numbered(texts: Sequence[str | None]) -> tuple[npt.NDArray[np.int64], tuple[str, ...]]:
    """The place of each text among the distinct ones."""
    place: dict[str, int] = {}
    numbers = [NONE if text is None else place.setdefault(text, len(place)) for text in texts]
    return np.array(numbers, np.int64), tuple(place)
