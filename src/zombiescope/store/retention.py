"""What is deleted so that a recording stays within its age and size: whole parts and segments, oldest first.

Frozen windows are exempt while all of them together fit into a quarter of the size limit; beyond that the
oldest of them lose their exemption, and the result says which. Rollups have limits of their own: thirty
days and 50 MB.

A part goes manifest first, so no reader ever finds half of it; what an interruption leaves belongs
to no part and is removed by the next compaction. Everything is known from file names and sizes: no file is
opened, and nothing heavy imported.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from zombiescope.base import json as _json
from zombiescope.base import safe_files
from zombiescope.store.freeze import Frozen, list_frozen, thaw
from zombiescope.store.layout import LOG_FOLDER, ROLLUP_FOLDER, segment_files
from zombiescope.store.locate import is_locked
from zombiescope.store.store import Directory, StoredFile

FROZEN_RATIO = 0.25
ROLLUP_KEEP_US = 30 * 86_400 * 1_000_000
ROLLUP_MAX_BYTES = 50_000_000
ROLLUP_MAX_FILES = 2000
"""Each start of the recorder begins a file: one that is restarted all the time must not fill the folder."""

_PART_FILE = re.compile(r"(date=[\d-]+)/([a-z_]+)-((\d{16})-(\d{16}))\.(parquet|json)")


@dataclass(frozen=True, slots=True)
class Freed:
    """What was deleted. `over_bytes`: how far the recording is above its limit still; the rest is in use."""

    parts: int
    segments: int
    rollups: int
    bytes: int
    frozen_given_up: tuple[str, ...]
    over_bytes: int


@dataclass(frozen=True, slots=True)
class _Unit:
    """What is deleted together; the file that makes it exist is the first."""

    from_us: int
    to_us: int
    files: tuple[str, ...]
    size_bytes: int

    @property
    def is_segment(self) -> bool:
        return self.files[0].startswith(LOG_FOLDER)


def enforce(
    node_dir: Path,
    keep_us: int,
    max_bytes: int,
    now_us: int,
    in_use: Collection[str] = (),
    *,
    frozen_ratio: float = FROZEN_RATIO,
    ended_us: int | None = None,
) -> Freed:
    """Deletes what is older than keep_us or too much for max_bytes. `in_use`: segments being written. `ended_us`: when
    the last segment ended, if that is not now."""
    last_us = now_us if ended_us is None else ended_us
    entries = Directory(node_dir).entries("")
    total = sum(entry.size_bytes for entry in entries)
    units = [unit for unit in _units(entries, last_us) if Path(unit.files[0]).name not in in_use]
    windows = list_frozen(node_dir)
    exempt = _exempt(units, windows, int(max_bytes * frozen_ratio))
    rollups = _outdated_rollups(entries, now_us)
    total -= sum(unit.size_bytes for unit in rollups)
    doomed = []
    for unit in sorted(units, key=lambda unit: (unit.from_us, unit.to_us)):
        if unit not in exempt and (unit.to_us < now_us - keep_us or total > max_bytes):
            doomed.append(unit)
            total -= unit.size_bytes
    _delete(node_dir, [*doomed, *rollups])
    given_up = _given_up(node_dir, windows, doomed, [unit for unit in units if unit not in doomed])
    return Freed(
        parts=sum(not unit.is_segment for unit in doomed),
        segments=sum(unit.is_segment for unit in doomed),
        rollups=len(rollups),
        bytes=sum(unit.size_bytes for unit in [*doomed, *rollups]),
        frozen_given_up=given_up,
        over_bytes=max(0, total - max_bytes),
    )


def enforce_earlier(node_dir: Path, keep_us: int, max_bytes: int, now_us: int) -> int:
    """The same for the recordings that lie beside ours: what was recorded here under earlier names. Answers the bytes.

    All of them together fit into what ours leaves of max_bytes, the newest first. Another recorder's and imported ones
    are left alone. A directory with nothing but what describes it goes when the rollups would."""
    room = max_bytes - size_of(node_dir)
    freed = 0
    for place in sorted(_earlier(node_dir), key=_newest_s, reverse=True):
        ratio = FROZEN_RATIO * max_bytes / max(1, room)
        freed += enforce(
            place, keep_us, max(0, room), now_us, frozen_ratio=ratio, ended_us=_last_written_us(place)
        ).bytes
        room -= size_of(place)
        if not _holds_anything(place) and _newest_s(place) * 1e6 < now_us - ROLLUP_KEEP_US:
            shutil.rmtree(place, ignore_errors=True)
    return freed


def size_of(node_dir: Path) -> int:
    return sum(entry.size_bytes for entry in Directory(node_dir).entries(""))


def _earlier(node_dir: Path) -> list[Path]:
    found = (place for place in node_dir.parent.glob("node=*") if place.is_dir() and not place.is_symlink())
    return [place for place in found if place != node_dir and is_locked(place) is False and _was_recorded(place)]


def _was_recorded(place: Path) -> bool:
    """Not imported: then it is here because somebody wants it."""
    try:
        said = _json.loads((place / "node.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(said, dict) and "imported" not in said and "started_us" in said


def _newest_s(place: Path) -> float:
    with contextlib.suppress(OSError):
        return (place / "node.json").stat().st_mtime
    return 0.0


def _last_written_us(place: Path) -> int:
    times = [0]
    for file in place.glob(f"{LOG_FOLDER}/*"):
        with contextlib.suppress(OSError):
            times.append(file.stat().st_mtime_ns // 1000)
    return max(times)


def _holds_anything(place: Path) -> bool:
    return any(
        _PART_FILE.fullmatch(entry.name) or entry.name.startswith(LOG_FOLDER) for entry in Directory(place).entries("")
    )


def _units(entries: Sequence[StoredFile], now_us: int) -> list[_Unit]:
    return [*_parts(entries), *_segments(entries, LOG_FOLDER, now_us)]


def _parts(entries: Iterable[StoredFile]) -> list[_Unit]:
    files: dict[tuple[str, str], list[StoredFile]] = {}
    for entry in entries:
        match = _PART_FILE.fullmatch(entry.name)
        if match:
            files.setdefault((match[1], match[3]), []).append(entry)
    units = []
    for (_, stem), members in files.items():
        members.sort(key=lambda entry: not entry.name.endswith(".json"))
        if members[0].name.endswith(".json"):
            from_us, to_us = map(int, stem.split("-"))
            size = sum(entry.size_bytes for entry in members)
            units.append(_Unit(from_us, to_us, tuple(entry.name for entry in members), size))
    return units


def _segments(entries: Iterable[StoredFile], folder: str, now_us: int) -> list[_Unit]:
    """Log files; each is taken to end where the next begins."""
    found = sorted(
        segment_files(entry for entry in entries if entry.name.startswith(folder)),
        key=lambda file: file.start_us,
    )
    ends = [later.start_us for _, later in pairwise(found)] + [now_us]
    return [
        _Unit(file.start_us, max(end, file.start_us), (file.name,), file.size_bytes)
        for file, end in zip(found, ends, strict=False)
    ]


def _exempt(units: Sequence[_Unit], windows: Sequence[Frozen], budget_bytes: int) -> set[_Unit]:
    """The units of frozen windows, the newest first, as far as the budget reaches."""
    exempt: set[_Unit] = set()
    for window in reversed(windows):
        for unit in sorted(units, key=lambda unit: -unit.from_us):
            if unit in exempt or not window.touches(unit.from_us, unit.to_us):
                continue
            if unit.size_bytes > budget_bytes:
                return exempt
            budget_bytes -= unit.size_bytes
            exempt.add(unit)
    return exempt


def _given_up(
    node_dir: Path, windows: Sequence[Frozen], doomed: Sequence[_Unit], kept: Sequence[_Unit]
) -> tuple[str, ...]:
    """Windows that lost data just now. One that has none left is no longer frozen."""
    lost = [window for window in windows if any(window.touches(unit.from_us, unit.to_us) for unit in doomed)]
    empty = [window for window in lost if not any(window.touches(unit.from_us, unit.to_us) for unit in kept)]
    thaw(node_dir, [window.id for window in empty])
    return tuple(window.id for window in lost)


def _outdated_rollups(entries: Sequence[StoredFile], now_us: int) -> list[_Unit]:
    """All but the newest that are too old or, oldest first, too much."""
    rollups = _segments(entries, ROLLUP_FOLDER, now_us)
    total = sum(unit.size_bytes for unit in rollups)
    doomed: list[_Unit] = []
    for unit in rollups[:-1]:
        too_many = len(rollups) - len(doomed) > ROLLUP_MAX_FILES
        if unit.to_us < now_us - ROLLUP_KEEP_US or total > ROLLUP_MAX_BYTES or too_many:
            doomed.append(unit)
            total -= unit.size_bytes
    return doomed


def _delete(node_dir: Path, units: Iterable[_Unit]) -> None:
    folders = set()
    for unit in units:
        for name in unit.files:
            safe_files.remove(node_dir / name)
            folders.add((node_dir / name).parent)
    for folder in folders:
        if folder.name.startswith("date="):
            with contextlib.suppress(OSError):  # it has other parts still
                folder.rmdir()
