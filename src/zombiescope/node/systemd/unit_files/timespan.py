"""Time spans as systemd writes them: "5min 20s", "100ms", "1.5h", "infinity"; a bare number is seconds."""

from __future__ import annotations

import re

INFINITY = (1 << 64) - 1
"""USEC_INFINITY of systemd, and what its D-Bus properties hold for it."""

_US = {
    "s": 10**6, "sec": 10**6, "second": 10**6, "seconds": 10**6,
    "m": 60 * 10**6, "min": 60 * 10**6, "minute": 60 * 10**6, "minutes": 60 * 10**6,
    "h": 3600 * 10**6, "hr": 3600 * 10**6, "hour": 3600 * 10**6, "hours": 3600 * 10**6,
    "d": 86400 * 10**6, "day": 86400 * 10**6, "days": 86400 * 10**6,
    "w": 7 * 86400 * 10**6, "week": 7 * 86400 * 10**6, "weeks": 7 * 86400 * 10**6,
    "M": 2629800 * 10**6, "month": 2629800 * 10**6, "months": 2629800 * 10**6,
    "y": 31557600 * 10**6, "year": 31557600 * 10**6, "years": 31557600 * 10**6,
    "ms": 1000, "msec": 1000, "us": 1, "usec": 1, "µs": 1, "μs": 1, "": 10**6,
}  # fmt: skip
_PART = re.compile(r"\s*(\d+)(?:\.(\d*))?\s*([A-Za-zµμ]*)")


def parse_us(text: str) -> int | None:
    """Microseconds; None for what systemd would pass over with a warning."""
    text = text.strip()
    if text == "infinity":
        return INFINITY
    position, total = 0, 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None or part[3] not in _US or len(part[1]) > 20:
            return None
        unit_us = _US[part[3]]
        total += int(part[1]) * unit_us
        if part[2]:
            fraction = part[2][:20]
            total += int(fraction) * unit_us // 10 ** len(fraction)
        position = part.end()
    return min(total, INFINITY) if text else None


def human(us: int) -> str:
    """1min 40s, 10s, 100ms; as systemctl shows it."""
    if us >= INFINITY:
        return "infinity"
    if us == 0:
        return "0"
    parts = []
    for name in ("y", "month", "w", "d", "h", "min", "s", "ms", "us"):
        count, us = divmod(us, _US[name])
        if count:
            parts.append(f"{count}{name}")
    return " ".join(parts)
