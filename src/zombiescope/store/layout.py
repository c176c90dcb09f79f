"""The files of one node's recording: their names, the manifest of a compacted part, and which of them count.

    node.json                                    who the node is
    lock                                         pid of the recorder that writes here
    recorder.lock                                held with flock() by it; readable by its user and root alone
    log/<start_us>.seg                           segments (log.py); the newest one may still grow
    date=YYYY-MM-DD/<table>-<from>-<to>.parquet  one part, compacted; the date is that of <from>, in UTC
    date=YYYY-MM-DD/part-<from>-<to>.json        its manifest, renamed into place last: now the part exists
    rollup/<start_us>.seg                        minutes and hours, kept for thirty days
    frozen/<id>.json                             windows that retention leaves alone

Two rules make a crash between any two steps of compaction harmless: Parquet files that no manifest names do
not count, and a segment that a manifest names does not count even if its file is still there.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from zombiescope.base import json as _json
from zombiescope.base import safe_files
from zombiescope.store.store import Store, StoredFile

NODE_FOLDER = "node="
NODE_FILE = "node.json"
LOG_FOLDER = "log/"
ROLLUP_FOLDER = "rollup/"
FROZEN_FOLDER = "frozen/"

_SEGMENT = re.compile(r"(?:log|rollup)/(\d{16})\.seg")
_SEGMENT_NAME = re.compile(r"(?:log/)?\d{16}\.seg")
_MANIFEST = re.compile(r"date=[\d-]+/part-(\d{16})-(\d{16})\.json")
_TABLE = re.compile(r"[a-z_]{1,40}")
_MOST_US = 253_402_300_799_999_999
"""The end of the year 9999: names of files have four digits for it."""
_MOST_IDS = (1 << 31) - 1
REVISION = 2
"""Of what is written into parts. 1: ids of `whole_stacks` were those of the segments, and stand for nothing
(docs/design/0069)."""
_PARQUET = re.compile(r"date=[\d-]+/([a-z_]+)-(\d{16}-\d{16})\.parquet")


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A log file, known by its name alone."""

    name: str
    start_us: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Span:
    """Time without a hole, by one run of the recorder. The monotonic clock distinguishes a hole from a clock step."""

    from_us: int
    to_us: int
    run_us: int
    boot: str
    first_seq: int
    last_seq: int
    from_monotonic_ns: int
    to_monotonic_ns: int


@dataclass(frozen=True, slots=True)
class TableFacts:
    rows: int
    bytes: int
    from_us: int | None = None
    to_us: int | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """A compacted part. `ids` says how many ids of each kind it uses: they run from 0 without holes. `revision`: what
    wrote its tables; a table that an older one wrote wrongly is not read (schema.Table.parquet_since)."""

    part: str
    from_us: int
    to_us: int
    boot: str
    segments: tuple[str, ...]
    tables: dict[str, TableFacts]
    ids: dict[str, int]
    spans: tuple[Span, ...] = ()
    damage: tuple[str, ...] = ()
    revision: int = REVISION
    size_bytes: int = field(default=0, compare=False)

    @property
    def stem(self) -> str:
        return f"{self.from_us:016d}-{self.to_us:016d}"

    @property
    def folder(self) -> str:
        return date_folder(self.from_us)

    @property
    def name(self) -> str:
        return f"{self.folder}part-{self.stem}.json"

    def file(self, table: str) -> str:
        return f"{self.folder}{table}-{self.stem}.parquet"

    def to_json(self) -> bytes:
        document = asdict(self)
        del document["size_bytes"]
        return json.dumps(document, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Manifest:
        """Raises ValueError when this is no manifest.

        The segments that it names are deleted, so each must be the name of a segment: nothing outside log/ is. Tables
        become names of files, and numbers become times and sizes of arrays: each is one that a recording can have.
        """
        try:
            document = _json.loads(data)
            strange = [name for name in document["segments"] if not _SEGMENT_NAME.fullmatch(name)]
            if strange:
                raise ValueError(f"it names {strange[0]!r}, which is not a segment")
            return cls(
                part=str(document["part"]),
                from_us=_number(document["from_us"], _MOST_US),
                to_us=_number(document["to_us"], _MOST_US),
                boot=str(document["boot"]),
                segments=tuple(document["segments"]),
                tables={_table(name): _facts(**_of(facts, TableFacts)) for name, facts in document["tables"].items()},
                ids={kind: _number(count, _MOST_IDS) for kind, count in document["ids"].items()},
                spans=tuple(_span(**_of(span, Span)) for span in document["spans"]),
                damage=tuple(map(str, document["damage"])),
                revision=_number(document.get("revision", 1)),
                size_bytes=len(data) + sum(facts["bytes"] for facts in document["tables"].values()),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a manifest: {error!r}") from error


def _number(value: object, most: int = 1 << 62) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"not a manifest: {str(value)[:40]!r} where a number of a recording is expected")
    return value


def _table(name: str) -> str:
    if not _TABLE.fullmatch(name):
        raise ValueError(f"not a manifest: {name[:40]!r} is not a table")
    return name


def _of(said: Mapping[str, object], kind: type[TableFacts | Span]) -> dict[str, Any]:
    """Without what only a newer version knows."""
    names = {each.name for each in fields(kind)}
    return {name: value for name, value in said.items() if name in names}


def _facts(rows: object, bytes: object, from_us: object = None, to_us: object = None) -> TableFacts:  # noqa: A002
    times = (None if each is None else _number(each, _MOST_US) for each in (from_us, to_us))
    return TableFacts(_number(rows), _number(bytes), *times)


def _span(boot: str, **numbers: object) -> Span:
    return Span(boot=str(boot), **{name: _signed(value) for name, value in numbers.items()})


def _signed(value: object) -> int:
    """A clock that was set back makes negative numbers."""
    return -_number(-value) if isinstance(value, int) and value < 0 else _number(value)


def date_folder(from_us: int) -> str:
    return time.strftime("date=%Y-%m-%d/", time.gmtime(from_us // 1_000_000))


def segment_name(start_us: int) -> str:
    """The file name of a segment, in log/ or rollup/."""
    return f"{start_us:016d}.seg"


def segment_files(entries: Iterable[StoredFile], prefix: str = "") -> list[SegmentFile]:
    """The log or rollup segments among entries; names lose the prefix."""
    found = []
    for entry in entries:
        name = entry.name.removeprefix(prefix)
        match = _SEGMENT.fullmatch(name)
        if match:
            found.append(SegmentFile(name, int(match[1]), entry.size_bytes))
    return found


def read_manifests(store: Store, prefix: str = "") -> tuple[list[Manifest], list[tuple[str, str]]]:
    """Every committed part in the order of time, and what could not be read as (name, why)."""
    manifests, damage = [], []
    for entry in store.entries(prefix):
        name = entry.name.removeprefix(prefix)
        if not _MANIFEST.fullmatch(name):
            continue
        try:
            manifests.append(Manifest.from_json(store.read(entry.name)))
        except FileNotFoundError:
            continue
        except (ValueError, OSError) as error:
            damage.append((name, str(error)))
    return sorted(manifests, key=lambda manifest: (manifest.from_us, manifest.to_us)), damage


def uncommitted(
    entries: Iterable[StoredFile], manifests: Iterable[Manifest], unreadable: Iterable[str] = ()
) -> list[str]:
    """Parquet files (and files being written) that no manifest names: what an interrupted compaction left.
    `unreadable`: names of manifests that are there and cannot be read."""
    stems = {f"{manifest.folder}{manifest.stem}" for manifest in manifests}
    stems |= {name.removesuffix(".json").replace("/part-", "/") for name in unreadable}
    left = []
    for entry in entries:
        match = _PARQUET.fullmatch(entry.name)
        orphan = match is not None and f"{entry.name.split('/')[0]}/{match[2]}" not in stems
        if orphan or (entry.name.startswith("date=") and entry.name.endswith(".tmp")):
            left.append(entry.name)
    return left


def write_synced(path: Path, data: bytes) -> None:
    """A small file that is there whole or not at all, whatever happens."""
    safe_files.replace(path, data, sync=True)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
