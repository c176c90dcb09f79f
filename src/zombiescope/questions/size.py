"""Sizes as people write them: "2GB 512MB 1GiB", or a bare number of bytes."""

from __future__ import annotations

import re

from zombiescope.base.errors import QuestionError

_BYTES = {"": 1, "B": 1}
_BYTES |= {f"{prefix}B": 1000**power for power, prefix in enumerate("kMGT", 1)}
_BYTES |= {f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGT", 1)}
_BYTES_BY_LOWER = {unit.lower(): size for unit, size in _BYTES.items()}

_SIZE = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*([a-z]*)", re.IGNORECASE)


def size_bytes(text: str, option: str | None = None) -> int:
    """Bytes from "2GB" (decimal), "1GiB" (binary) or a bare number. Raises QuestionError."""
    match = _SIZE.fullmatch(text.strip())
    unit = _BYTES_BY_LOWER.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise QuestionError(f"{text!r} is not a size", "write it as 512MB, 2GB or 1GiB", option=option)
    return int(float(match[1]) * unit)
