"""Services that were restarted or failed in the window, and those that wait to be started again now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zombiescope.node.systemd.show import RunningUnit
from zombiescope.query.events import Restarts, restarts
from zombiescope.store.event import Event


@dataclass(frozen=True, slots=True)
class Units:
    """`waiting`: in auto-restart at the end of the window; `often`: restarted at some time, most often first."""

    restarted: tuple[Restarts, ...]
    failed: tuple[str, ...]
    waiting: tuple[RunningUnit, ...]
    often: tuple[RunningUnit, ...]
    services: int


def units(events: Sequence[Event], running: dict[str, RunningUnit] | None) -> Units | None:
    """None where systemd could not be asked, and no event tells of it either."""
    restarted = restarts(events)
    failed = tuple(dict.fromkeys(event.text for event in events if event.kind == "unit_failed"))
    if running is None and not restarted and not failed:
        return None
    known = [unit for name, unit in (running or {}).items() if name.endswith(".service")]
    waiting = tuple(unit for unit in known if unit.sub_state.endswith("auto-restart"))
    often = sorted((unit for unit in known if restarts_of(unit)), key=lambda unit: -(restarts_of(unit) or 0))
    return Units(restarted, failed, waiting, tuple(often), len(known))


def restarts_of(unit: RunningUnit) -> int | None:
    return unit.number("NRestarts")
