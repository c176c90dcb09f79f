"""Thirty days of a node from its rollups: points over time.

Rows of one minute add up (a recorder that was restarted writes a second one).
Points of different boots are never put together: a reboot that helped must stay visible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from zombiescope.base.time import HOUR_US, MINUTE_US
from zombiescope.store.columns import numbers
from zombiescope.store.reader import Recording

MOST_POINTS = 1000


@dataclass(frozen=True, slots=True)
class Point:
    """A span that starts at `at_us`. None: not measured in it. Counts of cgroups are the last of the span."""

    at_us: int
    boot: str
    recorded_s: int
    cores_saturated_s: float
    longest_saturation_s: float
    longest_cpu: int | None
    busy_ratio: float | None
    system_ratio: float | None
    memory_cgroups: int | None
    dying: int | None
    restarts: int
    critical_events: int
    nic_events: int
    lost: int


class _Minute(NamedTuple):
    time: int
    boot: str | None
    seconds: int | None
    cores_saturated_ms: int | None
    longest_saturation_ms: int | None
    longest_cpu: int | None
    busy_ms: int | None
    system_ms: int | None
    cores: int | None
    memory_cgroups: int | None
    dying: int | None
    restarts: int | None
    critical_events: int | None
    nic_events: int | None
    lost: int | None


def history(
    recording: Recording, start_us: int | None = None, end_us: int | None = None, step_us: int | None = None
) -> list[Point]:
    """Points in the order of time. Without a step, as many minutes together as make a thousand points."""
    minutes = list(_minutes(recording, start_us, end_us))
    if not minutes:
        return []
    step = step_us or _step_for(minutes[-1].time - minutes[0].time)
    spans: dict[tuple[int, str], list[_Minute]] = defaultdict(list)
    for minute in minutes:
        spans[minute.time // step * step, minute.boot or ""].append(minute)
    return [_point(at_us, boot, members) for (at_us, boot), members in spans.items()]


def _minutes(recording: Recording, start_us: int | None, end_us: int | None) -> Iterator[_Minute]:
    rows = recording.table("minutes", start_us, end_us, _Minute._fields)
    columns = [rows.column(name).to_pylist() for name in _Minute._fields[1:]]
    return map(_Minute, numbers(rows.column("time")).tolist(), *columns)


def _step_for(span_us: int) -> int:
    """A minute, five, a quarter of an hour, or whole hours."""
    for minutes in (1, 5, 15):
        if span_us <= MOST_POINTS * minutes * MINUTE_US:
            return minutes * MINUTE_US
    return -(-span_us // (MOST_POINTS * HOUR_US)) * HOUR_US


def _point(at_us: int, boot: str, minutes: list[_Minute]) -> Point:
    longest = max(minutes, key=lambda minute: minute.longest_saturation_ms or 0)
    return Point(
        at_us=at_us,
        boot=boot,
        recorded_s=sum(minute.seconds or 0 for minute in minutes),
        cores_saturated_s=sum(minute.cores_saturated_ms or 0 for minute in minutes) / 1000,
        longest_saturation_s=(longest.longest_saturation_ms or 0) / 1000,
        longest_cpu=longest.longest_cpu,
        busy_ratio=_ratio([(minute, minute.busy_ms) for minute in minutes]),
        system_ratio=_ratio([(minute, minute.system_ms) for minute in minutes]),
        memory_cgroups=_last([minute.memory_cgroups for minute in minutes]),
        dying=_last([minute.dying for minute in minutes]),
        restarts=sum(minute.restarts or 0 for minute in minutes),
        critical_events=sum(minute.critical_events or 0 for minute in minutes),
        nic_events=sum(minute.nic_events or 0 for minute in minutes),
        lost=sum(minute.lost or 0 for minute in minutes),
    )


def _ratio(used: list[tuple[_Minute, int | None]]) -> float | None:
    """Milliseconds by the time of all cores that was recorded."""
    known = [(minute, ms) for minute, ms in used if ms is not None and minute.cores and minute.seconds]
    available_ms = sum((minute.cores or 0) * (minute.seconds or 0) * 1000 for minute, _ in known)
    return min(1.0, sum(ms for _, ms in known) / available_ms) if available_ms else None


def _last(values: list[int | None]) -> int | None:
    return next((value for value in reversed(values) if value is not None), None)
