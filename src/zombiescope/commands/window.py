"""The options that choose a window of a recording, the same on every command that reads one.

A moment T is written as
    12:03:22              in the recorded node's time zone, on the last day of the recording (on the day
                          before, if the recording ends earlier than that and the day before is in it)
    2026-04-01T12:03:22   ISO; in the node's zone unless it carries one
    1775038996.5          Unix seconds
    +30s                  from the recording's start
`--utc` reads and prints times in UTC instead of the node's zone. `--at T` is the second that begins at T, or
one tick where the recorder's ticks are longer than a second.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from typing import Annotated, Any, Protocol

import typer

from zombiescope.commands.groups import OptionGroup
from zombiescope.commands.quantities import duration_s

_PANEL = "Window"
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?")
_UNIX = re.compile(r"\d{9,11}(\.\d+)?")
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")

Last = Annotated[
    str | None,
    typer.Option(
        "--last",
        metavar="DURATION",
        help="The last 30s, 5m, 2h ... of the recording.",
        rich_help_panel=_PANEL,
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="T",
        help="From 12:03:22, an ISO time, Unix seconds, or +30s after the start.",
        rich_help_panel=_PANEL,
    ),
]
To = Annotated[str | None, typer.Option("--to", metavar="T", help="Up to T, written likewise.", rich_help_panel=_PANEL)]
At = Annotated[
    str | None,
    typer.Option("--at", metavar="T", help="The one second (or tick, if longer) at T.", rich_help_panel=_PANEL),
]
Utc = Annotated[
    bool,
    typer.Option("--utc", help="Read and print times in UTC, not in the node's zone.", rich_help_panel=_PANEL),
]


@dataclass(frozen=True)
class WindowOptions(OptionGroup):
    """The options that choose a window, as they were typed."""

    last: Last = None
    from_: From = None
    to: To = None
    at: At = None
    utc: Utc = False

    @property
    def given(self) -> bool:
        """Whether any of them says which window."""
        return any(part is not None for part in (self.last, self.from_, self.to, self.at))

    def choose(self, span: Span) -> Window:
        """The window that they mean; all of the recording without any. Raises typer.BadParameter."""
        return choose(span, self.last, self.from_, self.to, self.at, self.utc)


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
    """The window that the options mean; all of the recording without any. Raises typer.BadParameter."""
    zone = zone_of(span.node, utc)
    if at is not None and (last or from_ or to):
        raise typer.BadParameter("--at is a window of its own; leave out --last, --from and --to")
    if last is not None and from_ is not None:
        raise typer.BadParameter("--last and --from both say where the window starts; leave out one")
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
        raise typer.BadParameter(f"--from {from_!r} lies behind the end of the recording")
    if start >= end:
        raise typer.BadParameter("the window ends before it starts")
    return Window(start, end, zone)


def _tick_us(span: Span) -> int:
    return round(float(span.node.get("interval_s") or 1) * 1e6)


def moment(text: str, span: Span, zone: tzinfo, option: str) -> int:
    """Unix microseconds of a moment as a person writes it. Raises typer.BadParameter."""
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
        raise typer.BadParameter(
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
