"""What happens on the wide node: events, containers, gaps and NIC queues, each with the cores that it is about.

Events of every tile happen; those of a recorder about itself and marks only once, and so does the life of a container,
because the tiles of one recording share its cgroups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from zombiescope.kernel.cpu import parse_list
from zombiescope.lab.wide.axis import Axis, Slots
from zombiescope.lab.wide.identity import Identity
from zombiescope.lab.wide.output import Rows, rows_of
from zombiescope.lab.wide.tile import Tile, irq_of
from zombiescope.store import schema

_ONCE = ("recorder", "mark", "sysfs")
"""Sources of events that are about the node or the recorder, not about what runs on its cores."""
_TIMES = ("time", "started", "exited")


def rows_at(table: schema.Table, axis: Axis, rows: Sequence[dict[str, Any]]) -> Rows:
    """Each with the tick in which its time lies."""
    ticks = axis.tick_of(np.array([row["time"] for row in rows], np.int64)).tolist()
    return rows_of(table, ticks, [tuple(row[name] for name in table.names) for row in rows])


def spread(tile: Tile, rows: Sequence[dict[str, Any]], wide: Slots) -> Iterator[tuple[dict[str, Any], int]]:
    """The rows of a tile, again and again, each with its new time."""
    times = np.array([row["time"] for row in rows], np.int64)
    for place, at_us in zip(*(each.tolist() for each in tile.spread(times, wide, 0, len(wide))), strict=True):
        yield rows[place], at_us


def events(tiles: Sequence[Tile], identities: Sequence[Identity], axis: Axis, wide: Slots) -> Rows:
    found = [_event(row, row["time"], identities[0]) for row in tiles[0].source.rows("events")]
    for tile, identity in zip(tiles[1:], identities[1:], strict=True):
        own = [row for row in tile.source.rows("events") if row["source"] not in _ONCE]
        found += [_event(row, at_us, identity) for row, at_us in spread(tile, own, wide)]
    return rows_at(schema.EVENTS, axis, sorted(found, key=lambda row: int(row["time"])))


def _event(row: dict[str, Any], at_us: int, who: Identity) -> dict[str, Any]:
    return {**row, "time": at_us, "text": who.text(row["text"]), "fields": who.fields(row["fields"])}


def containers(tiles: Sequence[Tile], identities: Sequence[Identity], axis: Axis, wide: Slots) -> Rows:
    """The fault's, and those of the first tile of each recording."""
    found = list(tiles[0].source.rows("containers"))
    firsts = {id(tile.source): place for place, tile in reversed(list(enumerate(tiles))) if not tile.is_fault}
    for place in firsts.values():
        tile, who = tiles[place], identities[place]
        shift_us = int(wide.start_us[0]) - tile.start_us
        for row in tile.source.rows("containers"):
            moved = {name: row[name] + shift_us for name in _TIMES if row[name] is not None}
            if moved["time"] <= axis.end_us[-1]:
                found.append({**row, **moved, "requester_pid": who.pid(row["requester_pid"])})
    return rows_at(schema.CONTAINERS, axis, sorted(found, key=lambda row: int(row["time"])))


def gaps(tiles: Sequence[Tile], identities: Sequence[Identity], axis: Axis, wide: Slots) -> Rows:
    """Where the recorder of the fault was blind, and where one of another tile was blind for some core."""
    found = [{**row, "source": identities[0].text(row["source"]), "why": identities[0].text(row["why"])}
             for row in tiles[0].source.rows("gaps")]  # fmt: skip
    for tile, who in zip(tiles[1:], identities[1:], strict=True):
        own = [row for row in tile.source.rows("gaps") if "cpu" in f"{row['source']} {row['why']}"]
        for row, at_us in spread(tile, own, wide):
            end_us = at_us + row["end"] - row["time"]
            texts = {name: who.text(row[name]) for name in ("source", "why")}
            found.append({**row, **texts, "time": at_us, "end": end_us})
    return rows_at(schema.GAPS, axis, found)


def queues(tiles: Sequence[Tile], axis: Axis, begins: Sequence[int]) -> Rows:
    """One queue after the other of each card, over all tiles; said where a segment begins."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    counts: dict[tuple[str, str], int] = {}
    for tile in tiles:
        last = {(row["nic"], row["queue"]): row for row in tile.source.rows("queues")}
        for row in last.values():
            cores = [tile.cores[cpu] for cpu in parse_list((row["cpus"] or "").encode()) if cpu in tile.cores]
            if cores:
                moved = _queue(row, tile, cores, counts)
                rows[moved["nic"], moved["queue"]] = moved
    first_us = min((row["time"] for row in tiles[0].source.rows("queues")), default=int(axis.end_us[0]))
    times = [min(first_us, int(axis.end_us[0])), *(int(axis.end_us[tick]) for tick in begins[1:])]
    said = [{**row, "time": at_us} for at_us in times for row in rows.values()]
    return rows_at(schema.QUEUES, axis, said)


def _queue(row: dict[str, Any], tile: Tile, cores: Sequence[int], counts: dict[tuple[str, str], int]) -> dict[str, Any]:
    nic, direction = row["nic"], str(row["queue"]).rpartition("-")[0]
    number = counts[nic, direction] = counts.get((nic, direction), -1) + 1
    irq = None if row["irq"] is None else irq_of(row["irq"], tile.number)
    return {**row, "queue": f"{direction}-{number}", "irq": irq, "cpus": ",".join(map(str, cores))}
