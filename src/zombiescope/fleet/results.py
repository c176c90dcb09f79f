"""Statistics that were read, kept as Parquet: an interrupted report goes on where it stopped, and the next day's report
reads one more day.

    RESULTS/v1/date=DAY/shard=HH/<table>-<batch>.parquet    rows of at most BATCH_ITEMS items of one day and shard
    RESULTS/v1/date=DAY/shard=HH/items-<batch>.parquet      renamed into place last: now the batch exists

DAY is "node" for what is about nodes themselves. A node's shard is a hash of its name, so that files stay few and of
one size however large the fleet is. A batch of which no row is current any more is removed. What cannot be read is
removed, too, and its items are read again: nothing here is the only copy of anything.
"""

from __future__ import annotations

import os
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from zombiescope.base import safe_files
from zombiescope.fleet import tables
from zombiescope.fleet.plan import Item, Listing
from zombiescope.fleet.reading import ItemRows

SHARDS = 32
BATCH_ITEMS = 64
BATCH_BYTES = 64 << 20
"""Of recordings: a node with a thousand times as much is a batch of its own."""
_ITEMS = "items"

Key = tuple[str, str]
"""Node and day."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Items that are read by one worker and written together."""

    day: str
    shard: int
    items: tuple[Item, ...]

    @property
    def size_bytes(self) -> int:
        return sum(item.size_bytes for item in self.items)


def shard_of(node: str) -> int:
    return zlib.crc32(node.encode("utf-8", "surrogateescape")) % SHARDS


def batches(items: Iterable[Item]) -> list[Batch]:
    """What is to be read, in batches; the largest first, so that nobody waits for one that began last."""
    grouped: dict[tuple[str, int], list[Item]] = defaultdict(list)
    for item in items:
        grouped[item.day, shard_of(item.node)].append(item)
    made = [Batch(day, shard, tuple(part)) for (day, shard), group in grouped.items() for part in _bounded(group)]
    return sorted(made, key=lambda batch: -batch.size_bytes)


def _bounded(items: Sequence[Item]) -> Iterator[list[Item]]:
    part: list[Item] = []
    size = 0
    for item in items:
        if part and (len(part) >= BATCH_ITEMS or size + item.size_bytes > BATCH_BYTES):
            yield part
            part, size = [], 0
        part.append(item)
        size += item.size_bytes
    if part:
        yield part


class Results:
    """The results of one root. Raises OSError where the directory cannot be made."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / f"v{tables.VERSION}"
        self.directory.mkdir(parents=True, exist_ok=True)

    def known(self, found: Listing) -> dict[Key, str]:
        """Which items of a listing have results that are current, and the batch that holds them."""
        wanted = {(item.node, item.day): item.fingerprint for item in found.items}
        current: dict[Key, str] = {}
        for path in self._files(_ITEMS):
            rows = self._read(path)
            if rows is None:
                continue
            kept = False
            for node, day, batch, fingerprint in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                if wanted.get((node, day)) == fingerprint:
                    current[node, day] = batch
                    kept = True
            if not kept and self._is_of(path, found):
                self._remove(path)
        return current

    def _is_of(self, path: Path, found: Listing) -> bool:
        """Whether the day of a batch was listed, so that nobody else needs it."""
        day = path.parent.parent.name.removeprefix("date=")
        return day == "node" or day in found.days

    def write(self, batch: Batch, found: Sequence[ItemRows]) -> str:
        """One batch; gives its name. Raises OSError."""
        folder = self.directory / f"date={batch.day or 'node'}" / f"shard={batch.shard:02x}"
        folder.mkdir(parents=True, exist_ok=True)
        name = _batch_name(batch)
        for table in sorted(tables.TABLES, key=lambda table: table == _ITEMS):
            keys = [(one.node, one.day, name) for one in found for _ in one.rows[table]]
            if keys:
                rows = tables.arrow(table, keys, [row for one in found for row in one.rows[table]])
                self._put(folder / f"{table}-{name}.parquet", rows)
        return name

    def _put(self, path: Path, rows: pa.Table) -> None:
        with safe_files.replacing(path) as file:
            pq.write_table(rows, file, compression="zstd")

    def files(self, table: str, days: Iterable[str]) -> list[str]:
        """Files of one table for some days."""
        folders = [f"date={day or 'node'}" for day in days]
        return [
            str(path) for folder in folders for path in sorted((self.directory / folder).glob(f"*/{table}-*.parquet"))
        ]

    def _files(self, table: str) -> list[Path]:
        return sorted(self.directory.glob(f"date=*/*/{table}-*.parquet"))

    def _read(self, path: Path) -> pa.Table | None:
        try:
            return pq.read_table(path, columns=["node", "day", "batch", "fingerprint"], partitioning=None)
        except (OSError, pa.ArrowException, KeyError):
            self._remove(path)
            return None

    def _remove(self, items: Path) -> None:
        """A batch: first that it exists, then what it holds."""
        name = items.name.removeprefix(f"{_ITEMS}-")
        items.unlink(missing_ok=True)
        for table in tables.TABLES:
            (items.parent / f"{table}-{name}").unlink(missing_ok=True)


def _batch_name(batch: Batch) -> str:
    said = " ".join(sorted(f"{item.node} {item.fingerprint}" for item in batch.items))
    return f"{zlib.crc32(said.encode('utf-8', 'surrogateescape')):08x}{len(batch.items):04d}"


def default_directory(place: str) -> Path:
    """Where results of a root are kept when nobody says where."""
    base = os.environ.get("XDG_CACHE_HOME") or _home_cache()
    whole = place if "://" in place else str(Path(place).resolve())
    return Path(base) / "zombiescope" / "fleet" / f"{zlib.crc32(whole.encode()):08x}"


def _home_cache() -> str:
    try:
        return str(Path.home() / ".cache")
    except RuntimeError:  # a container's arbitrary uid has no home
        return f"/var/tmp/zombiescope-{os.geteuid()}"  # noqa: S108


def taken(items: Iterable[Item], known: dict[Key, str]) -> list[Item]:
    """Items that have no current result."""
    return [item for item in items if (item.node, item.day) not in known]
