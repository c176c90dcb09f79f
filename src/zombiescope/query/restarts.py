"""Services that were restarted in a window, from its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from zombiescope.store.event import Event


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
