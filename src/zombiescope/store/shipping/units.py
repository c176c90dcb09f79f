"""What of a node's recording can be sent, and in which pieces.

    a part      its Parquet files and, last, the manifest that makes it exist; it replaces the segments it was made of
    a segment   log/ and rollup/: one file, which may still grow; any prefix of it is a segment
    a document  node.json, incidents.json, frozen/<id>.json: small, and replaced as a whole

The names are those of store/layout.py, below node=NAME/, so that whoever reads a directory of recordings reads the
target as it is, and the two rules of layout.py (no manifest, no part; a segment that a manifest names does not count)
hold over there too. Nothing is opened here but the manifests: names, sizes and times are enough.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from zombiescope.store import incident_file, layout
from zombiescope.store.freeze import Frozen, list_frozen
from zombiescope.store.locate import is_locked
from zombiescope.store.store import Directory, StoredFile

_PART_FILE = re.compile(r"(date=[\d-]+)/([a-z_]+)-((\d{16})-(\d{16}))\.(parquet|json)")
OPEN_US = 253_402_300_799_999_999
"""The end of what still grows."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What arrives together; the last of its files makes it exist."""

    name: str
    files: tuple[str, ...]
    size_bytes: int
    from_us: int
    to_us: int
    growing: bool = False
    urgent: bool = False
    """It holds some of a frozen window."""

    @property
    def key(self) -> str:
        """Its name as that of one file."""
        return self.name.replace("/", "~")

    @property
    def is_part(self) -> bool:
        return self.name.startswith("date=")

    @property
    def is_rollup(self) -> bool:
        return self.name.startswith(layout.ROLLUP_FOLDER)


@dataclass(frozen=True, slots=True)
class Contents:
    """A node's recording at one moment."""

    parts: tuple[Unit, ...]
    segments: tuple[Unit, ...]
    rollups: tuple[Unit, ...]
    frozen: tuple[Frozen, ...]
    documents: tuple[str, ...]

    @property
    def data(self) -> tuple[Unit, ...]:
        """Parts and segments, each with whether it is urgent."""
        return tuple(
            replace(unit, urgent=any(window.touches(unit.from_us, unit.to_us) for window in self.frozen))
            for unit in (*self.parts, *self.segments)
        )


def contents(node_dir: Path) -> Contents:
    """What there is now. Raises OSError."""
    entries = Directory(node_dir).entries("")
    newest = _growing(node_dir, entries)
    frozen = list_frozen(node_dir)
    documents = [layout.NODE_FILE, incident_file.NAME, *(f"{layout.FROZEN_FOLDER}{each.id}.json" for each in frozen)]
    there = {entry.name for entry in entries}
    return Contents(
        parts=tuple(_parts(entries)),
        segments=tuple(_segments(entries, layout.LOG_FOLDER, newest)),
        rollups=tuple(_segments(entries, layout.ROLLUP_FOLDER, newest)),
        frozen=tuple(frozen),
        documents=tuple(name for name in documents if name in there),
    )


def _growing(node_dir: Path, entries: Sequence[StoredFile]) -> set[str]:
    """The segment of each folder that was written to last, if a recorder runs."""
    if is_locked(node_dir) is False:
        return set()
    found: dict[str, tuple[int, str]] = {}
    for file in layout.segment_files(entries):
        folder = file.name.partition("/")[0]
        try:
            written_ns = (node_dir / file.name).stat().st_mtime_ns
        except FileNotFoundError:
            continue
        found[folder] = max(found.get(folder, (0, "")), (written_ns, file.name))
    return {name for _, name in found.values()}


def _parts(entries: Sequence[StoredFile]) -> list[Unit]:
    files: dict[str, list[StoredFile]] = {}
    for entry in entries:
        if match := _PART_FILE.fullmatch(entry.name):
            files.setdefault(f"{match[1]}/part-{match[3]}.json", []).append(entry)
    found = []
    for name, members in files.items():
        if name not in {member.name for member in members}:
            continue
        from_us, to_us = (int(number) for number in name.rpartition("/part-")[2].removesuffix(".json").split("-"))
        ordered = sorted((member.name for member in members), key=lambda member: (member == name, member))
        size = sum(member.size_bytes for member in members)
        found.append(Unit(name, tuple(ordered), size, from_us, to_us))
    return sorted(found, key=lambda unit: unit.from_us)


def _segments(entries: Sequence[StoredFile], folder: str, growing: set[str]) -> list[Unit]:
    files = sorted(
        layout.segment_files(entry for entry in entries if entry.name.startswith(folder)),
        key=lambda file: file.start_us,
    )
    ends = [*(file.start_us for file in files[1:]), OPEN_US]
    return [
        Unit(file.name, (file.name,), file.size_bytes, file.start_us, OPEN_US if file.name in growing else end,
             growing=file.name in growing)
        for file, end in zip(files, ends, strict=False)
    ]  # fmt: skip


def is_sendable(unit: Unit) -> bool:
    """Whether a unit can be given other words."""
    return unit.name.startswith("date=")


# --- ordinary ---------------------------------------------------------------------------------------------------------
# An ordinary segment now and then, so that a fleet knows what healthy nodes do when nothing happens.
#
# Frozen windows come from nodes that had incidents. Their stacks mean little beside nothing: the differential flame
# graph of a fleet needs some of healthy nodes. One closed segment (two minutes) of one node in ten a day is enough.
# Which node, and in which hour, is drawn from its name and the day, so that a thousand nodes do so at different hours.

_DRAWS = 10_000


def ordinary_due(node: str, now_us: int, share: float, sampled: str) -> str | None:
    """The day for which a segment is to be sent now; `sampled` is the last one for which that was done."""
    now = datetime.fromtimestamp(now_us / 1e6, UTC)
    day = now.date().isoformat()
    drawn = zlib.crc32(f"{node} {day}".encode())
    is_chosen = drawn % _DRAWS < share * _DRAWS
    return day if is_chosen and day != sampled and now.hour >= drawn // _DRAWS % 24 else None


def newest_ordinary(segments: Sequence[Unit]) -> Unit | None:
    """The newest segment that is closed. Once it is compacted its part is not sent in its place."""
    closed = [unit for unit in segments if not unit.growing]
    return max(closed, key=lambda unit: unit.from_us) if closed else None
