"""An item becomes rows of statistics. Nothing that can be read wrongly ends a report: it is counted as damage."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from zombiescope.fleet import tables
from zombiescope.fleet.plan import NODE_DAY, TOO_FAR_AHEAD_S, Item, ItemStore
from zombiescope.fleet.reading import identity, rollups, windows
from zombiescope.fleet.tables import Rows
from zombiescope.store.store import Store


@dataclass(frozen=True, slots=True)
class ItemRows:
    node: str
    day: str
    rows: Rows


def read(store: Store, item: Item) -> ItemRows:
    """The statistics of one item. Never raises for what a file holds; a store that refuses is damage too."""
    began = time.perf_counter()
    rows: Rows = {name: [] for name in tables.TABLES}
    damage: list[str] = []
    known: dict[str, Any] = {}
    own = ItemStore(store, item)
    try:
        if item.day == NODE_DAY:
            known = identity.read(own, item, rows, damage)
        else:
            rollups.read(own, item, rows, damage)
            windows.read(own, item, rows, damage)
    except Exception as error:  # noqa: BLE001  one node's files must not end the report on all of them
        damage.append(f"{type(error).__name__}: {error}")
    known |= {
        "fingerprint": item.fingerprint, "files": len(item.files), "bytes": item.size_bytes, "damaged": len(damage),
        "damage": tables.encodable(damage[0][:300]) if damage else None, "ahead_s": _ahead_s(item, rows),
        "seconds": round(time.perf_counter() - began, 6),
    }  # fmt: skip
    rows["items"] = [tables.row("items", known)]
    return ItemRows(item.node, item.day, rows)


def _ahead_s(item: Item, rows: Rows) -> float | None:
    """How much the node's clock is ahead of the store's, at the least: a row cannot be later than its file.

    None where nothing shows it: a clock that is behind looks like a file that was shipped late.
    """
    stored = [file.changed_us for file in item.files if file.changed_us and file.name.startswith("rollup/")]
    last = max((span[1] for span in rows["spans"]), default=None)
    if not stored or last is None:
        return None
    ahead_s = (last - max(stored)) / 1e6
    return round(ahead_s, 3) if ahead_s > TOO_FAR_AHEAD_S else None
