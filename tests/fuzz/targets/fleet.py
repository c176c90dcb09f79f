"""What one node of a fleet wrote, read for a report on all of them: node.json, incidents.json, a day of rollups."""

from __future__ import annotations

import io
import json
from typing import BinaryIO

from benchmarks.fleets import days

from tests.fuzz.target import Target
from zombiescope.fleet import tables
from zombiescope.fleet.plan import NODE_DAY, Item, ItemStore
from zombiescope.fleet.reading import identity, rollups
from zombiescope.store.object_store import StoredObject
from zombiescope.store.store import StoredFile

START_US = 1_775_001_600_000_000
CAUSE = {"pattern": "zombie-memcg", "summary": "s", "frames": ["a", "b"], "culprit": {"unit": "x.service"}, "hog": {}}
INCIDENT = {
    "id": "0123456789", "from": 1.5, "to": 2.5, "severity": "critical", "state": "open", "causes": [CAUSE],
    "symptoms": [{"event": "ray_job_failed", "ran_s": 7}], "cost": {"gpu_seconds_lost": 3.5},
}  # fmt: skip
DOCUMENT = {"kernel": "6.1", "boot": "b", "labels": {"zone": "a"}, "cpus": {"online": [0, 1]}, "missing": [],
            "incidents": [INCIDENT]}  # fmt: skip


class _OneFile:
    """A store in which every file has the same content."""

    place = "fuzz"

    def __init__(self, data: bytes) -> None:
        self._data = data

    def folders(self) -> list[str]:
        return []

    def entries(self, prefix: str) -> list[StoredFile]:  # noqa: ARG002
        return []

    def open(self, name: str) -> BinaryIO:  # noqa: ARG002
        return io.BytesIO(self._data)

    def read(self, name: str) -> bytes:  # noqa: ARG002
        return self._data

    def close(self) -> None: ...


def _item(day: str, *names: str) -> Item:
    return Item("n", day, "node=n/", tuple(StoredObject(name, 1, None) for name in names), "f")


def _stored(rows: tables.Rows) -> None:
    """Whatever was read can be written down, and be sent."""
    for table, found in rows.items():
        made = tables.arrow(table, [("n", "d", "b")] * len(found), found)
        json.dumps(made.to_pylist(), ensure_ascii=False).encode()


def documents(data: bytes) -> None:
    rows: tables.Rows = {name: [] for name in tables.TABLES}
    item, damage = _item(NODE_DAY, "node.json", "incidents.json"), list[str]()
    known = identity.read(ItemStore(_OneFile(data), item), item, rows, damage)
    rows["items"] = [tables.row("items", known)]
    _stored(rows)


def rollup(data: bytes) -> None:
    rows: tables.Rows = {name: [] for name in tables.TABLES}
    item = _item("2026-04-01", f"rollup/{START_US:016d}.seg")
    rollups.read(ItemStore(_OneFile(data), item), item, rows, [])
    _stored(rows)


def _day() -> bytes:
    return days.header(START_US, "b", {"zone": "x"}, "6.1") + days.body(START_US, 3, 1, "b", None)


TARGETS = (
    Target("fleet-documents", documents, lambda: [json.dumps(DOCUMENT).encode()], cost=10),
    Target("fleet-rollups", rollup, lambda: [_day()], cost=20),
)
