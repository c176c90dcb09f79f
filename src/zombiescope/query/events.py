"""Everything that happened, from the table `events`: kernel log, systemd, churn of cgroups, marks.

events() reads a window of a recording; of_frame() reads what a recorder has just appended, and imports
nothing heavy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zombiescope.base import json as _json
from zombiescope.base.severity import rank
from zombiescope.kernel.log_formats import FORMATS
from zombiescope.store import schema
from zombiescope.store.event import KINDS, Event
from zombiescope.store.log import LogFrame

if TYPE_CHECKING:
    from zombiescope.store.reader import Recording


def events(
    recording: Recording,
    start_us: int | None = None,
    end_us: int | None = None,
    *,
    kinds: Collection[str] | None = None,
    at_least: str = "info",
) -> list[Event]:
    """The events in the window, in the order of time."""
    from zombiescope.store.columns import numbers

    rows = recording.table("events", start_us, end_us)
    times = numbers(rows.column("time")).tolist()
    texts = [rows.column(name).to_pylist() for name in schema.EVENTS.names[1:]]
    return _wanted((_event(*row) for row in zip(times, *texts, strict=True)), kinds, at_least)


def of_frame(frame: LogFrame, *, kinds: Collection[str] | None = None, at_least: str = "info") -> list[Event]:
    """The events in one frame of the log."""
    found = []
    for block in frame.blocks:
        if block.table is schema.EVENTS:
            found += [_event(*row) for row in zip(*(block.column(name) for name in schema.EVENTS.names), strict=True)]
    return _wanted(sorted(found, key=lambda event: event.at_us), kinds, at_least)


def _wanted(found: Iterable[Event], kinds: Collection[str] | None, at_least: str) -> list[Event]:
    least = rank(at_least)
    return [event for event in found if (kinds is None or event.kind in kinds) and rank(event.severity) >= least]


def _event(
    at_us: int,
    kind: str | None,
    source: str | None,
    severity: str | None,
    text: str | None,
    fields: str | None,
) -> Event:
    return Event(at_us, kind or "", source or "", severity or "info", text or "", _fields(fields))


def _fields(text: str | None) -> dict[str, Any]:
    try:
        fields = _json.loads(text) if text else {}
    except ValueError:
        return {"unreadable": text}
    return fields if isinstance(fields, dict) else {"unreadable": text}


# --- kinds ------------------------------------------------------------------------------------------------------------
# The kinds of events that there are: whoever asks for one that does not exist has mistyped it.


def known_kinds() -> frozenset[str]:
    """All that a recorder of this version can write."""
    return KINDS | {line.kind for line in FORMATS}


# --- restarts ---------------------------------------------------------------------------------------------------------
# Services that were restarted in a window, from its events.


@dataclass(frozen=True, slots=True)
class Restarts:
    """`so_far` counts since somebody last started the unit by hand."""

    unit: str
    times: int
    so_far: int | None
    text: str
    first_us: int
    last_us: int


def restarts(events: Iterable[Event]) -> tuple[Restarts, ...]:
    """Of each unit, most often first."""
    found: dict[str, Restarts] = {}
    for event in events:
        if event.kind == "unit_restart":
            unit = str(event.fields.get("unit") or "?")
            before = found.get(unit)
            times = (before.times if before else 0) + int(event.fields.get("delta") or 1)
            first_us = before.first_us if before else event.at_us
            found[unit] = Restarts(unit, times, event.fields.get("n_restarts"), event.text, first_us, event.at_us)
    return tuple(sorted(found.values(), key=lambda one: -one.times))
