"""Durations and sizes as people write them ("20s 5m 12h 250ms 1d", "2GB 512MB 1GiB"), and as people read
them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from zombiescope.cli.usage import wrong_usage
from zombiescope.questions import duration
from zombiescope.questions.size import size_bytes as read_size


def duration_s(text: str) -> float:
    """Seconds from "20s", "250ms", "1h30m". Raises typer.BadParameter."""
    with wrong_usage():
        return duration.duration_s(text)


def size_bytes(text: str) -> int:
    """Bytes from "2GB" (decimal), "1GiB" (binary) or a bare number. Raises typer.BadParameter."""
    with wrong_usage():
        return read_size(text)


def within(value: float, low: float, high: float, shown: str) -> float:
    """The value, if it lies between the limits; `shown` says them with their unit. Raises
    typer.BadParameter."""
    if not low <= value <= high:
        raise typer.BadParameter(f"must be {shown}")
    return value


def human_bytes(size: float | None) -> str:
    """Three digits and a decimal unit: "1.43 GB"."""
    if size is None:
        return "?"
    for unit in ("B", "kB", "MB", "GB"):
        if abs(size) < 999.5:
            return f"{size:.0f} B" if unit == "B" else f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def human_s(seconds: float | None) -> str:
    """The two largest units: "2 h 05 m", "6.0 s", "250 ms"."""
    if seconds is None:
        return "?"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    whole = round(seconds)
    for size, unit, below_size, below in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // below_size:02d} {below}"
    raise AssertionError(seconds)


def human_count(number: float | None) -> str:
    """Thousands apart: "68,680"."""
    return "?" if number is None else f"{number:,.0f}"


def percent(ratio: float | None, digits: int = 0) -> str:
    """A ratio 0..1 as "9%"; not measured is "?"."""
    return "?" if ratio is None else f"{ratio * 100:.{digits}f}%"


FORMATS: dict[str, Callable[[Any], str]] = {
    "text": lambda value: str(value or ""),
    "number": lambda value: "?" if value is None else str(value),
    "count": human_count,
    "bytes": human_bytes,
    "duration": lambda value: "-" if value == 0 else human_s(value),
    "percent": percent,
    "ratio": lambda value: "?" if value is None else f"{value * 100:.1f}",
}
"""How a table shows a field of an answer (model/answer.py)."""
NUMBERS = frozenset(FORMATS) - {"text"}
