"""Which window of a recording is meant, as a person or a link writes it.

A moment T is written as
    12:03:22              in the recorded node's time zone, on the last day of the recording (on the day
                          before, if the recording ends earlier than that and the day before is in it)
    2026-04-01T12:03:22   ISO; in the node's zone unless it carries one
    1775038996.5          Unix seconds; also @1775038996.5, as `date -d` takes them
    +30s                  from the recording's start
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from typing import Annotated, Any, Protocol

from zombiescope.base.errors import QuestionError
from zombiescope.model.answer import FLAT, HIDDEN, Document, Field
from zombiescope.questions.duration import duration_s
from zombiescope.questions.parameter import Question, parameter

_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?")
_UNIX = re.compile(r"@?\d{9,11}(?:\.\d+)?|@-?\d{1,11}(?:\.\d+)?|-?\d{1,11}\.\d+")
"""Short whole numbers need the @: 20260401 is a day."""
_OFFSET = re.compile(r"([+-])(\d{2}):?(\d{2})")


_PANEL = "Window"
_TEXT = {"metavar": "T", "panel": _PANEL, "longest": 64}


class RecordedSpan(Protocol):
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

    start_us: Annotated[int, Field(key="from")]
    end_us: Annotated[int, Field(key="to")]
    zone: Annotated[tzinfo, HIDDEN]

    def clock(self, at_us: int, digits: int = 0) -> str:
        return clock(at_us, self.zone, digits)

    def heading(self) -> str:
        """The window for a person: "2026-04-01 12:03:22 – 12:08:22 CEST"."""
        start, end = (datetime.fromtimestamp(at / 1e6, self.zone) for at in (self.start_us, self.end_us))
        tail = f"{end:%H:%M:%S}" if start.date() == end.date() else f"{end:%Y-%m-%d %H:%M:%S}"
        return f"{start:%Y-%m-%d %H:%M:%S} – {tail} {end:%Z}".rstrip()


@dataclass(frozen=True, slots=True)
class WindowAnswer(Document):
    """What was recorded on a node from one moment to another."""

    node: str
    window: Annotated[Window, FLAT]

    @property
    def heading(self) -> str:
        return f"{self.node}  {self.window.heading()}"


def held(recording: RecordedSpan, utc: bool = False) -> str:
    """From when to when something is recorded, for whoever asked about another time."""
    return Window(recording.start_us, recording.end_us + 1, zone_of(recording.node, utc)).heading()


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


@dataclass(frozen=True, slots=True)
class WindowQuestion(Question):
    """The window as it was written."""

    last: str | None = parameter(None, "The last 30s, 5m, 2h ... of the recording.", **_TEXT | {"metavar": "DURATION"})
    from_: str | None = parameter(
        None,
        "From 12:03:22, an ISO time, Unix seconds, or +30s after the start.",
        name="from",
        also=("since",),
        **_TEXT,
    )
    to: str | None = parameter(None, "Up to T, in the same form.", also=("until",), **_TEXT)
    at: str | None = parameter(None, "The one second (or tick, if longer) at T.", **_TEXT)
    utc: bool = parameter(False, "Read and print times in UTC, not in the node's zone.", panel=_PANEL, only="command")
    reach_us: int | None = None
    """How far beside the recording it may reach; more is cut off."""

    @property
    def given(self) -> bool:
        """Whether any of them says which window."""
        return any(part is not None for part in (self.last, self.from_, self.to, self.at))

    @property
    def fixed_end_us(self) -> int | None:
        """Where it ends, if both ends are Unix seconds and so the same whatever is recorded later."""
        ends = [_UNIX.fullmatch(text) for text in (self.from_, self.to) if text is not None]
        if len(ends) < 2 or not all(ends) or self.last is not None or self.at is not None:
            return None
        return _unix_us(self.to or "")

    def choose(self, recording: RecordedSpan) -> Window:
        """The window that is meant; all of the recording where none is given. Raises QuestionError."""
        chosen = self._chosen(recording)
        if self.reach_us is None:
            return chosen
        low, high = recording.start_us - self.reach_us, recording.end_us + self.reach_us
        start = min(max(chosen.start_us, low), high - 1)
        return Window(start, max(min(chosen.end_us, high), start + 1), chosen.zone)

    def _chosen(self, recording: RecordedSpan) -> Window:
        zone = zone_of(recording.node, self.utc)
        if self.at is not None and (self.last or self.from_ or self.to):
            raise QuestionError("already names a window", "leave out last, from and to", option="at")
        if self.last is not None and self.from_ is not None:
            raise QuestionError("the start of the window is given twice", "leave out last or from", option="last")
        if self.at is not None:
            start = moment(self.at, recording, zone, "at")
            return Window(start, start + max(1_000_000, _tick_us(recording)), zone)
        # The last row lies at end_us itself, and a window does not include its end.
        end = recording.end_us + 1 if self.to is None else moment(self.to, recording, zone, "to")
        start = recording.start_us
        if self.from_ is not None:
            start = moment(self.from_, recording, zone, "from")
        elif self.last is not None:
            start = end - round(duration_s(self.last, "last") * 1e6)
        if start >= end and self.from_ is not None and self.to is None:
            raise QuestionError(
                f"{self.from_!r} is after the recording ends", f"it holds {held(recording, self.utc)}", option="from"
            )
        if start >= end:
            raise QuestionError("the window ends before it starts", f"recorded is {held(recording, self.utc)}")
        return Window(start, end, zone)


WHOLE = WindowQuestion()


def _tick_us(recording: RecordedSpan) -> int:
    return round(float(recording.node.get("interval_s") or 1) * 1e6)


def moment(text: str, recording: RecordedSpan, zone: tzinfo, option: str) -> int:
    """Unix microseconds of a moment as a person writes it. Raises QuestionError."""
    text = text.strip()
    if text.startswith("+"):
        return recording.start_us + round(duration_s(text[1:], option) * 1e6)
    if _UNIX.fullmatch(text):
        return _unix_us(text)
    try:
        if _CLOCK.fullmatch(text):
            return _time_of_day(time.fromisoformat(text.zfill(len(text) + (text[1] == ":"))), recording, zone)
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise QuestionError(
            f"{text!r} is not a time",
            "write 12:03:22, 2026-04-01T12:03:22, +30s from the start, or Unix seconds: 1775038996.5 or @1775038996",
            option=option,
        ) from None
    return _us(parsed if parsed.tzinfo else parsed.replace(tzinfo=zone))


def _unix_us(text: str) -> int:
    return round(float(text.removeprefix("@")) * 1e6)


def _time_of_day(wanted: time, recording: RecordedSpan, zone: tzinfo) -> int:
    last_day = datetime.fromtimestamp(recording.end_us / 1e6, zone).date()
    today = _us(datetime.combine(last_day, wanted, zone))
    day_before = _us(datetime.combine(last_day - timedelta(days=1), wanted, zone))
    return day_before if today > recording.end_us and day_before >= recording.start_us else today


def _us(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6)
