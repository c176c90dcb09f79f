"""How often a timer fires: its OnCalendar= and On*Sec= settings as runs per day.

Calendar expressions as in man systemd.time: "hourly", "*:0/10", "Mon..Fri *-*-* 06:00:00", each part a list of
values, ranges (a..b) and steps (a/n). The count is of a day on which the expression is in season, which is what
matters for something that is to be found churning; a date or a week day that restricts it only divides by what
it lets through where that is plain.
"""

from __future__ import annotations

import re

from zombiescope.base.time import DAY_US
from zombiescope.node.systemd.unit_files.syntax import Assignment
from zombiescope.node.systemd.unit_files.timespan import parse_us
from zombiescope.node.systemd.unit_files.unit import Unit

_SHORTHANDS = {
    "minutely": "*-*-* *:*:00", "hourly": "*-*-* *:00:00", "daily": "*-*-* 00:00:00", "weekly": "Mon *-*-* 00:00:00",
    "monthly": "*-*-01 00:00:00", "quarterly": "*-01,04,07,10-01 00:00:00", "semiannually": "*-01,07-01 00:00:00",
    "semi-annually": "*-01,07-01 00:00:00", "yearly": "*-01-01 00:00:00", "annually": "*-01-01 00:00:00",
}  # fmt: skip
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_REPEATING = ("OnUnitActiveSec", "OnUnitInactiveSec")
_ONCE = ("OnActiveSec", "OnBootSec", "OnStartupSec")


def repeats(unit: Unit) -> list[Assignment]:
    """The settings of a timer that make it fire again. An empty one takes back all before it, of the other keys too."""
    found: list[Assignment] = []
    for item in unit.assignments:
        if item.section == "Timer" and item.key in ("OnCalendar", *_REPEATING, *_ONCE):
            found.append(item)
            if not item.value:
                found.clear()
    return [item for item in found if item.key not in _ONCE]


def runs_per_day(unit: Unit) -> float | None:
    """Of a timer; None where nothing makes it fire again, or an expression is not understood."""
    total = 0.0
    for item in repeats(unit):
        if item.key == "OnCalendar":
            runs = calendar_runs_per_day(item.value)
            if runs is None:
                return None
            total += runs
        elif span_us := parse_us(item.value):
            total += DAY_US / span_us
    return total or None


def calendar_runs_per_day(expression: str) -> float | None:
    """The mean over a year, to a good approximation; None for what is no calendar expression."""
    words = _SHORTHANDS.get(expression.strip().lower(), expression).split()
    if words and (re.fullmatch(r"[A-Z][A-Za-z0-9_+-]*(/\S+)?", words[-1]) and not _week_days(words[-1])):
        words = words[:-1]  # a time zone
    days, date, time = 7, "*-*-*", "00:00:00"
    for position, word in enumerate(words):
        if position == 0 and _week_days(word):
            days = _week_days(word)
        elif ":" in word:
            time = word
        elif "-" in word or "~" in word:
            date = word
        else:
            return None
    share = _date_share(date)
    runs = _time_count(time)
    return None if not words or share is None or runs is None else runs * share * days / 7


def _week_days(word: str) -> int:
    """How many days a list of week days names; 0 for what is none."""
    found = set()
    for part in word.rstrip(",").lower().split(","):
        ends = [
            next((n for n, day in enumerate(_DAYS) if end.startswith(day)), None) for end in re.split(r"\.\.|-", part)
        ]
        if None in ends or len(ends) > 2 or not part.replace(".", "").replace("-", "").isalpha():
            return 0
        first, last = ends[0], ends[-1]
        assert first is not None
        assert last is not None
        found |= set(range(first, last + 1))
    return len(found)


def _date_share(date: str) -> float | None:
    parts = re.split(r"[-~]", date)
    if len(parts) not in (2, 3):
        return None
    months, days = _count(parts[-2], 1, 12), _count(parts[-1], 1, 31)
    if months is None or days is None:
        return None
    return months / 12 * (1.0 if parts[-1] == "*" else min(1.0, days / 30.4))


def _time_count(time: str) -> float | None:
    parts = time.split(":")
    if len(parts) not in (2, 3):
        return None
    counts = [_count(part, 0, most) for part, most in zip([*parts, "0"][:3], (23, 59, 59), strict=True)]
    total = 1.0
    for count in counts:
        if count is None:
            return None
        total *= count
    return total


def _count(part: str, least: int, most: int) -> int | None:
    """How many values of a part of an expression are between two bounds."""
    values: set[float] = set()
    for item in part.split(","):
        text, slash, step = item.partition("/")
        begin, dots, end = text.partition("..")
        try:
            first = least if begin == "*" else float(begin)
            last = most if begin == "*" or (slash and not dots) else float(end) if dots else first
            width = float(step) if slash else 1.0
        except ValueError:
            return None
        # Written so that what is no number (nan) is refused too. Steps of next to nothing would be counted for ever,
        # and so would numbers so large that a step makes no difference to them; systemd takes none of either.
        if not (width > 0 and least <= first < most + 1 and last < most + 1 and (last - first) / width <= 10_000):
            return None
        value = float(first)
        while value <= last + (0.999 if most == 59 and slash else 0):
            values.add(value)
            value += width
    return len(values)
