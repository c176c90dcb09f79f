"""Durations as people write them: "20s 5m 12h 250ms 1d", "1h30m"."""

from __future__ import annotations

import re
from collections.abc import Callable

from zombiescope.base.errors import QuestionError

_SECONDS = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(us|ms|s|min|m|h|d|w)\s*")
_MOST_S = 1e10
"""Three centuries: more is a slip of the hand, and not a number of microseconds that fits anywhere."""


def duration_s(text: str, option: str | None = None) -> float:
    """Seconds from "20s", "250ms", "1h30m". Raises QuestionError."""
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip():
        raise QuestionError(f"{text!r} is not a duration", "write it as 250ms, 20s, 5m, 12h or 1d", option=option)
    seconds = float(sum(float(number) * _SECONDS[unit] for number, unit in parts))
    if seconds > _MOST_S:
        raise QuestionError(f"{text!r} is too long", option=option)
    return seconds


def between(low_s: float, high_s: float, limits: str) -> Callable[[str], float]:
    """A reader of durations within limits; `limits` says them with their unit."""

    def read(text: str) -> float:
        seconds = duration_s(text)
        if not low_s <= seconds <= high_s:
            raise QuestionError(f"must be {limits}")
        return seconds

    return read
