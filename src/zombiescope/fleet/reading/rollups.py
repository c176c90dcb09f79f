"""A node's day of rollups as hours: each segment is decoded once, frame by frame, and added up as it comes.

Memory does not grow with the number of rows: hours and units are few, whatever the file holds. Beyond MOST_HOURS or
MOST_UNITS (somebody's clock, somebody's names) further ones are damage, not memory.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from zombiescope.base.time import HOUR_US
from zombiescope.fleet import tables
from zombiescope.fleet.plan import Item, ItemStore
from zombiescope.fleet.reading.identity import MOST_OF_A_NAME, labels_text, text
from zombiescope.fleet.tables import Rows
from zombiescope.store import schema
from zombiescope.store.layout import ROLLUP_FOLDER
from zombiescope.store.log import Block, DamagedError, SegmentReader

MOST_HOURS, MOST_UNITS = 24 * 60, 4096
_TOGETHER = 4096
"""Minutes that are added up at a time."""


def _sum(before: int | None, values: list[int]) -> int:
    return (before or 0) + sum(values)


def _largest(before: int | None, values: list[int]) -> int:
    return max(before or 0, *values)


def _last(_: int | None, values: list[int]) -> int:
    return values[-1]


_FIGURES = {
    "seconds": ("seconds", _sum), "saturated_ms": ("cores_saturated_ms", _sum), "busy_ms": ("busy_ms", _sum),
    "system_ms": ("system_ms", _sum), "restarts": ("restarts", _sum), "critical": ("critical_events", _sum),
    "nic": ("nic_events", _sum), "lost": ("lost", _sum), "longest_ms": ("longest_saturation_ms", _largest),
    "cores": ("cores", _largest), "memory_cgroups": ("memory_cgroups", _last), "dying": ("dying", _last),
}  # fmt: skip
"""Of an hour: which column of the minutes, and how they are put together."""
_COLUMNS = ("time", "boot", *(column for column, _ in _FIGURES.values()))
_MOST_US = 253_402_300_799_000_000


@dataclass(slots=True)
class _Unit:
    cpu_ms: int = 0
    kernel_ms: int = 0
    busiest_minute_ms: int = 0
    first_us: int = _MOST_US


class _Day:
    def __init__(self) -> None:
        self.hours: dict[tuple[int, str], dict[str, Any]] = {}
        self.units: dict[str, _Unit] = {}
        self.left_out = 0
        self.first_us, self.last_us = _MOST_US, 0
        self._waiting: dict[str, list[Any]] = {name: [] for name in _COLUMNS}

    def minutes(self, block: Block) -> None:
        """A frame brings one of them: they wait for each other, and are added up column by column."""
        rows = block.rows
        for name, waiting in self._waiting.items():
            waiting.extend(block.columns[name] or (None,) * rows)
        if len(self._waiting["time"]) >= _TOGETHER:
            self.fold()

    def fold(self) -> None:
        """Adds up the minutes that wait."""
        waiting, self._waiting = self._waiting, {name: [] for name in _COLUMNS}
        groups: dict[tuple[int, str], list[int]] = {}
        for row, (at_us, boot) in enumerate(zip(waiting["time"], waiting["boot"], strict=True)):
            if at_us is None or not 0 < at_us < _MOST_US:
                self.left_out += 1
                continue
            groups.setdefault((at_us // HOUR_US * HOUR_US, boot or ""), []).append(row)
        for (hour_us, boot), rows in groups.items():
            hour = self._hour(hour_us, boot)
            if hour is not None:
                times = [waiting["time"][row] for row in rows]
                self.first_us, self.last_us = min(self.first_us, *times), max(self.last_us, *times)
                for name, (column, how) in _FIGURES.items():
                    values = [value for row in rows if (value := waiting[column][row]) is not None]
                    if values:
                        hour[name] = how(hour.get(name), values)

    def _hour(self, hour_us: int, boot: str) -> dict[str, Any] | None:
        hour = self.hours.get((hour_us, boot))
        if hour is None:
            if len(self.hours) >= MOST_HOURS:
                self.left_out += 1
                return None
            hour = self.hours[hour_us, boot] = {"hour_us": hour_us, "boot": boot[:MOST_OF_A_NAME]}
        return hour

    def unit_hours(self, block: Block) -> None:
        columns = (block.column(name) for name in ("time", "unit", "cpu_ms", "kernel_ms", "busiest_minute_ms"))
        for at_us, name, cpu_ms, kernel_ms, busiest in zip(*columns, strict=True):
            unit = self._unit(name)
            if unit is None:
                continue
            unit.cpu_ms += cpu_ms or 0
            unit.kernel_ms += kernel_ms or 0
            unit.busiest_minute_ms = max(unit.busiest_minute_ms, busiest or 0)
            unit.first_us = min(unit.first_us, at_us or _MOST_US)

    def _unit(self, name: str | None) -> _Unit | None:
        if not name:
            return None
        unit = self.units.get(name)
        if unit is None:
            if len(self.units) >= MOST_UNITS:
                self.left_out += 1
                return None
            unit = self.units[name] = _Unit()
        return unit


def read(store: ItemStore, item: Item, rows: Rows, damage: list[str]) -> None:
    """Fills in spans, boots, hours and units."""
    day = _Day()
    for file in item.files:
        if file.name.startswith(ROLLUP_FOLDER):
            _segment(store, file.name, day, rows, damage)
    if day.left_out:
        damage.append(f"{day.left_out:,} rollup rows have no valid time or name for one day")
    rows["hours"] = [tables.row("hours", hour) for hour in day.hours.values()]
    rows["units"] = [
        (name[:MOST_OF_A_NAME], unit.cpu_ms, unit.kernel_ms, unit.busiest_minute_ms, unit.first_us)
        for name, unit in day.units.items()
    ]


def booted(wall_us: int, monotonic_ns: int) -> int | None:
    """When the node was booted, by both of its clocks. None where the second was not written, or is no such clock."""
    booted_us = wall_us - monotonic_ns // 1000
    return booted_us if monotonic_ns > 0 and booted_us > 0 else None


def _segment(store: ItemStore, name: str, day: _Day, rows: Rows, damage: list[str]) -> None:
    day.first_us, day.last_us = _MOST_US, 0
    booted_us = None
    try:
        with store.open(name) as file:
            reader = SegmentReader(file)
            for frame in reader.frames():
                booted_us = booted(frame.wall_us, frame.monotonic_ns) or booted_us
                for block in frame.blocks:
                    if block.table is schema.MINUTES:
                        day.minutes(block)
                    elif block.table is schema.UNIT_HOURS:
                        day.unit_hours(block)
            cut = file.seek(0, os.SEEK_END) - reader.position
    except (DamagedError, ValueError, OSError) as error:
        damage.append(f"{name}: {error}")
        return
    finally:
        day.fold()
    damage += [f"{name}: {what}" for what in (reader.left_out, reader.damage) if what]
    if cut and not reader.damage:
        damage.append(f"{name}: ends inside a frame; its last {cut:,} bytes are lost")
    header = reader.header
    if day.last_us:
        rows["boots"].append((text(header.get("boot")), booted_us, day.first_us, day.last_us))
        known = (text(header.get("boot")), text(header.get("kernel")), labels_text(header.get("labels")))
        rows["spans"].append((day.first_us, day.last_us, *known))
