"""Frozen windows: spans of time that retention leaves alone, within its budget.

One file each, frozen/<id>.json: {"id", "from_us", "to_us", "why", "at_us"}. The id is made of the window
and the reason, so freezing the same window for the same reason again changes nothing. Imports nothing
heavy: the recorder freezes incidents.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import chain, count
from pathlib import Path

from zombiescope.base import json as _json
from zombiescope.base import safe_files
from zombiescope.store.layout import FROZEN_FOLDER, write_synced
from zombiescope.store.store import Directory

_SLUG_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Frozen:
    id: str
    from_us: int
    to_us: int
    why: str
    at_us: int

    def touches(self, from_us: int, to_us: int) -> bool:
        return self.from_us <= to_us and from_us <= self.to_us


def freeze(node_dir: Path, from_us: int, to_us: int, why: str, *, at_us: int | None = None) -> Frozen:
    """Exempts a window from retention. Raises ValueError when it is empty, OSError when it cannot write."""
    if from_us >= to_us:
        raise ValueError("the window to freeze is empty: it ends before it starts")
    existing = list_frozen(node_dir)
    for frozen in existing:
        if (frozen.from_us, frozen.to_us, frozen.why) == (from_us, to_us, why):
            return frozen
    now_us = time.time_ns() // 1000 if at_us is None else at_us
    name = _id(from_us, to_us, why, {frozen.id for frozen in existing})
    frozen = Frozen(name, from_us, to_us, why, now_us)
    safe_files.make_directory(node_dir / FROZEN_FOLDER)
    write_synced(node_dir / FROZEN_FOLDER / f"{name}.json", json.dumps(asdict(frozen)).encode())
    return frozen


def thaw(node_dir: Path, ids: Iterable[str]) -> None:
    """Gives windows back to retention; unknown ids are no error."""
    known = {frozen.id for frozen in list_frozen(node_dir)}
    for frozen in known.intersection(ids):
        safe_files.remove(node_dir / FROZEN_FOLDER / f"{frozen}.json")


def list_frozen(node_dir: Path) -> list[Frozen]:
    """Every frozen window, oldest first. A file that cannot be read, or whose id is not its own name, freezes
    nothing: ids become names of files that are deleted."""
    found = []
    store = Directory(node_dir)
    for path in (node_dir / FROZEN_FOLDER).glob("*.json"):
        try:
            frozen = parse(store.read(f"{FROZEN_FOLDER}{path.name}"))
        except (OSError, ValueError):
            continue
        if frozen.id == path.stem:
            found.append(frozen)
    return sorted(found, key=lambda frozen: (frozen.from_us, frozen.to_us, frozen.id))


def parse(data: bytes) -> Frozen:
    """Raises ValueError."""
    try:
        frozen = Frozen(**_json.loads(data))
    except TypeError as error:
        raise ValueError(f"not a frozen window: {error}") from error
    numbers, texts = (frozen.from_us, frozen.to_us, frozen.at_us), (frozen.id, frozen.why)
    if not all(type(each) is int and 0 <= each < 1 << 62 for each in numbers) or not all(
        isinstance(each, str) for each in texts
    ):
        raise ValueError("not a frozen window: it has other values than one")
    return frozen


def _id(from_us: int, to_us: int, why: str, taken: set[str]) -> str:
    """20251009T085320Z-600s-nic-reset; with a number after it when another window has that name."""
    start = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(from_us // 1_000_000))
    slug = re.sub(r"[^a-z0-9]+", "-", why.lower())[:_SLUG_LENGTH].strip("-")
    name = "-".join(filter(None, (start, f"{-(-(to_us - from_us) // 1_000_000)}s", slug)))
    return next(name for name in chain([name], (f"{name}-{n}" for n in count(2))) if name not in taken)
