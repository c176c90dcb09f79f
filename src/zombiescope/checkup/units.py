"""Services that were restarted or failed in the window, and those that wait to be started again now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from zombiescope.recording.event import Event
from zombiescope.systemd.units import UnitState


@dataclass(frozen=True, slots=True)
class Restarted:
    """`so_far` counts since somebody last started the unit by hand."""

    unit: str
    times: int
    so_far: int | None
    text: str


@dataclass(frozen=True, slots=True)
class UnitsSeen:
    """`waiting`: in auto-restart at the end of the window; `often`: restarted at some time, most often first."""

    restarted: tuple[Restarted, ...]
    failed: tuple[str, ...]
    waiting: tuple[UnitState, ...]
    often: tuple[UnitState, ...]
    services: int


def units_seen(events: Iterable[Event], now: tuple[UnitState, ...] | None) -> UnitsSeen | None:
    """None where systemd could not be asked, and no event tells of it either."""
    restarts: dict[str, Restarted] = {}
    failed = []
    for event in events:
        unit = str(event.fields.get("unit") or "?")
        if event.kind == "unit_restart":
            before = restarts[unit].times if unit in restarts else 0
            times = before + int(event.fields.get("delta") or 1)
            restarts[unit] = Restarted(unit, times, event.fields.get("n_restarts"), event.text)
        elif event.kind == "unit_failed":
            failed.append(event.text)
    if now is None and not restarts and not failed:
        return None
    known = now or ()
    waiting = tuple(state for state in known if state.sub_state.endswith("auto-restart"))
    often = sorted((state for state in known if state.n_restarts), key=lambda state: -(state.n_restarts or 0))
    most = tuple(sorted(restarts.values(), key=lambda one: -one.times))
    return UnitsSeen(most, tuple(dict.fromkeys(failed)), waiting, tuple(often), len(known))
