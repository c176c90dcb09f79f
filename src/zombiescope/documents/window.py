"""Which window of a recording is meant, as a person or a link writes it.

A moment T is written as
    12:03:22              in the recorded node's time zone, on the last day of the recording (on the day
                          before, if the recording ends earlier than that and the day before is in it)
    2026-04-01T12:03:22   ISO; in the node's zone unless it carries one
    1775038996.5          Unix seconds
    +30s                  from the recording's start
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from typing import Any, Protocol

from zombiescope.documents.duration import duration_s
from zombiescope.documents.unclear import UnclearError

_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?")
_UNIX = re.compile(r"\d{9,11}(\.\d+)?")
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")


class Span(Protocol):
    """What a window is cut from: a recording knows who it is of, and from when to when."""

    @property
    def node(self) -> dict[str, Any]: ...
    @property
    def start_us(self) -> int: ...
    @property
    def end_us(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Window:
    """From `start_us` up to, not including, `end_us`; `zone` is the one in which to print."""

    start_us: int
    end_us: int
    zone: tzinfo

    def clock(self, at_us: int, digits: int = 0) -> str:
        return clock(at_us, self.zone, digits)

    def heading(self) -> str:
        """The window for a person: "2026-04-01 12:03:22 – 12:08:22 CEST"."""
        start, end = (datetime.fromtimestamp(at / 1e6, self.zone) for at in (self.start_us, self.end_us))
        tail = f"{end:%H:%M:%S}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M:%S}"
        return f"{start:%Y-%m-%d %H:%M:%S} – {tail} {end:%Z}".rstrip()


def zone_of(node: dict[str, Any], utc: bool = False) -> tzinfo:
    """The node's time zone; UTC where it is unknown on this machine."""
    name = node.get("timezone")
    if utc or not name:
        return UTC
    if match := _OFFSET.fullmatch(str(name)):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-offset if match[1] == "-" else offset)
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(str(name))
    except (KeyError, ValueError, OSError):
        return UTC


def clock(at_us: int, zone: tzinfo, digits: int = 0) -> str:
    """The time of day, with as many digits of the second as asked for."""
    text = f"{datetime.fromtimestamp(at_us / 1e6, zone):%H:%M:%S.%f}"
    return text[: 8 + (digits + 1 if digits else 0)]


def choose(
    span: Span,
    last: str | None = None,
    from_: str | None = None,
    to: str | None = None,
    at: str | None = None,
    utc: bool = False,
) -> Window:
    """The window that the options mean; all of the recording without any. Raises UnclearError."""
    zone = zone_of(span.node, utc)
    if at is not None and (last or from_ or to):
        raise UnclearError("--at is a window of its own; leave out --last, --from and --to")
    if last is not None and from_ is not None:
        raise UnclearError("--last and --from both say where the window starts; leave out one")
    if at is not None:
        start = moment(at, span, zone, "--at")
        return Window(start, start + max(1_000_000, _tick_us(span)), zone)
    # The last row lies at end_us itself, and a window does not include its end.
    end = span.end_us + 1 if to is None else moment(to, span, zone, "--to")
    start = span.start_us
    if from_ is not None:
        start = moment(from_, span, zone, "--from")
    elif last is not None:
        start = end - round(duration_s(last) * 1e6)
    if start >= end and from_ is not None and to is None:
        raise UnclearError(f"--from {from_!r} lies behind the end of the recording")
    if start >= end:
        raise UnclearError("the window ends before it starts")
    return Window(start, end, zone)


def _tick_us(span: Span) -> int:
    return round(float(span.node.get("interval_s") or 1) * 1e6)


def moment(text: str, span: Span, zone: tzinfo, option: str) -> int:
    """Unix microseconds of a moment as a person writes it. Raises UnclearError."""
    text = text.strip()
    if text.startswith("+"):
        return span.start_us + round(duration_s(text[1:]) * 1e6)
    if _UNIX.fullmatch(text):
        return round(float(text) * 1e6)
    try:
        if _CLOCK.fullmatch(text):
            return _time_of_day(time.fromisoformat(text.zfill(len(text) + (text[1] == ":"))), span, zone)
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise UnclearError(
            f"{option} {text!r} is not a time; write 12:03:22, 2026-04-01T12:03:22, Unix seconds, or +30s "
            "from the start"
        ) from None
    return _us(parsed if parsed.tzinfo else parsed.replace(tzinfo=zone))


def _time_of_day(wanted: time, span: Span, zone: tzinfo) -> int:
    last_day = datetime.fromtimestamp(span.end_us / 1e6, zone).date()
    today = _us(datetime.combine(last_day, wanted, zone))
    day_before = _us(datetime.combine(last_day - timedelta(days=1), wanted, zone))
    return day_before if today > span.end_us and day_before >= span.start_us else today


def _us(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6)
