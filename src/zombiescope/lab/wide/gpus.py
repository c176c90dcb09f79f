"""GPUs on the wide node: each tile brings the cards of its machine, under numbers of their own, with its processes.

What the driver counts since the boot never falls on one card, also where a background begins again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from zombiescope.base.time import SECOND_US
from zombiescope.lab.wide.axis import Axis, Slots
from zombiescope.lab.wide.events import rows_at, spread
from zombiescope.lab.wide.identity import Identity
from zombiescope.lab.wide.output import Rows
from zombiescope.lab.wide.tile import Tile
from zombiescope.store import schema

_CARD = ("uuid", "pci")
_COUNTED = (
    "ecc_corrected", "ecc_uncorrected", "remapped_corrected", "remapped_uncorrected", "nvlink_errors",
    "nvlink_recoveries", "pcie_replays", "pcie_errors",
)  # fmt: skip

_Row = dict[str, Any]


def gpus(tiles: Sequence[Tile], identities: Sequence[Identity], axis: Axis, wide: Slots, begins: Sequence[int]) -> Rows:
    found = list(tiles[0].source.rows("gpus"))
    for tile, who in zip(tiles[1:], identities[1:], strict=True):
        highest: dict[tuple[int, str], int] = {}
        for row in _states(schema.GPUS, tile, axis, wide, begins):
            moved = who.row(schema.GPUS, row, row["time"])
            moved |= {name: who.card(row[name]) for name in _CARD}
            found.append(moved | {name: _never_less(highest, moved, name) for name in _COUNTED})
    return rows_at(schema.GPUS, axis, _in_order(found))


def _never_less(highest: dict[tuple[int, str], int], row: _Row, name: str) -> int | None:
    if row[name] is None:
        return None
    key = (row["gpu"], name)
    highest[key] = max(highest.get(key, 0), row[name])
    return highest[key]


def living(
    table: schema.Table,
    tiles: Sequence[Tile],
    identities: Sequence[Identity],
    axis: Axis,
    wide: Slots,
    begins: Sequence[int],
) -> Rows:
    """Processes that are said again in every segment until they end."""
    found = list(tiles[0].source.rows(table.name))
    for tile, who in zip(tiles[1:], identities[1:], strict=True):
        states = _states(table, tile, axis, wide, begins)
        found += [who.row(table, row, row["time"]) for row in states]
    return rows_at(table, axis, _in_order(found))


def gpu_seconds(tiles: Sequence[Tile], identities: Sequence[Identity], axis: Axis, wide: Slots) -> Rows:
    """Rows are of whole seconds of Unix time: of two that come to lie in one, the later one is taken."""
    found = list(tiles[0].source.rows("gpu_seconds"))
    for tile, who in zip(tiles[1:], identities[1:], strict=True):
        own: dict[tuple[int, int], _Row] = {}
        for row, at_us in spread(tile, tile.source.rows("gpu_seconds"), wide):
            second_us = -(-at_us // SECOND_US) * SECOND_US
            own[row["gpu"], second_us] = who.row(schema.GPU_SECONDS, row, second_us)
        found += own.values()
    return rows_at(schema.GPU_SECONDS, axis, _in_order(found))


def _states(table: schema.Table, tile: Tile, axis: Axis, wide: Slots, begins: Sequence[int]) -> Iterator[_Row]:
    """Rows of a table of states at their new times, and where a segment begins all that hold there."""
    rows = tile.source.rows(table.name)
    current: dict[tuple[Any, ...], _Row] = {}
    for row in rows:
        if row["time"] <= tile.start_us:
            _hold(current, table, row)
        else:
            current.setdefault(_key(table, row), row)
    segments = [int(axis.end_us[tick]) for tick in begins]
    for row, at_us in spread(tile, rows, wide):
        while segments and segments[0] <= at_us:
            begins_us = segments.pop(0)
            yield from ({**held, "time": begins_us} for held in current.values())
        _hold(current, table, row)
        yield {**row, "time": at_us}
    for begins_us in segments:
        yield from ({**held, "time": begins_us} for held in current.values())


def _key(table: schema.Table, row: _Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in table.holds_by)


def _hold(current: dict[tuple[Any, ...], _Row], table: schema.Table, row: _Row) -> None:
    if row.get("ended"):
        current.pop(_key(table, row), None)
    else:
        current[_key(table, row)] = row


def _in_order(rows: list[_Row]) -> list[_Row]:
    return sorted(rows, key=lambda row: int(row["time"]))
