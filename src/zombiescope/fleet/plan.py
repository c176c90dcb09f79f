"""What there is under a root, and what of it has to be read.

    ROOT/node=NAME/...            a directory of recordings, or an address of an object store (s3://bucket/prefix)
    ROOT/shard=HH/node=NAME/...   the same, spread over prefixes: listings of very large fleets go on side by side

The root is listed once. An item is what is read together: a node's day (rollups, and the windows that were shipped of
that day), or the node itself (node.json, incidents.json: day ""). Its fingerprint says whether it is as it was when its
results were written. A file that belongs to no day of a recording is left alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, BinaryIO

from zombiescope.base.errors import UserError
from zombiescope.store.object_store import ObjectStore, StoredObject, is_address
from zombiescope.store.store import Directory, Store, StoredFile

NODE_DAY = ""
"""The day of an item that is about the node itself."""
_PLACE = re.compile(r"((?:shard=[^/]{1,64}/)?node=([^/]{1,255})/)(.+)")
_NODE = re.compile(r"(?:shard=[^/]{1,64}/)?node=[^/]{1,255}/")
_SEGMENT = re.compile(r"(?:log|rollup)/([0-9]{16})\.seg")
_DATED = re.compile(r"date=([0-9]{4}-[0-9]{2}-[0-9]{2})/[^/]+")
_LAST_YEAR = "9998"
"""Of a day that has one after it."""
_DEEPEST = 3
"""node=NAME/date=DAY/, below a shard."""
_OF_THE_NODE = ("node.json", "incidents.json")
TOO_FAR_AHEAD_S = 1.0


class NoFleetError(UserError):
    """There is nothing to report on."""


@dataclass(frozen=True, slots=True)
class Item:
    node: str
    day: str
    prefix: str
    """Of the node's files under the root."""
    files: tuple[StoredObject, ...]
    """Names without the prefix."""
    fingerprint: str

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class Listing:
    place: str
    items: tuple[Item, ...]
    files: int
    size_bytes: int
    seconds: float

    @property
    def nodes(self) -> set[str]:
        return {item.node for item in self.items}

    @property
    def days(self) -> list[str]:
        return sorted({item.day for item in self.items} - {NODE_DAY})


def listing(place: str) -> Listing:
    """Everything under the root. Raises NoFleetError, and OSError where the store does not answer."""
    began = time.perf_counter()
    objects = ObjectStore(place).objects() if is_address(place) else _walked(place)
    items = _items(objects)
    if not items:
        raise NoFleetError(
            f"there is no node in {place}", "it is expected to hold node=NAME directories, as the agent ships them"
        )
    size = sum(each.size_bytes for each in objects)
    return Listing(place, tuple(items), len(objects), size, time.perf_counter() - began)


def chosen(found: Listing, days: Iterable[str]) -> Listing:
    """The items of some days, and of the nodes themselves."""
    wanted = {*days, NODE_DAY}
    kept = tuple(item for item in found.items if item.day in wanted)
    return Listing(found.place, kept, found.files, found.size_bytes, found.seconds)


def _walked(place: str) -> list[StoredObject]:
    if not Path(place).is_dir():
        raise NoFleetError(f"{place} is not a directory", "name the directory that holds node=NAME directories")
    found: dict[str, StoredObject] = {}
    pending = [(place, "")]
    nodes = []
    while pending:
        folder, before = pending.pop()
        if _NODE.fullmatch(before):
            nodes.append(before)
        for entry in _entries(folder, before, found):
            name = before + entry.name
            if entry.is_dir(follow_symlinks=False):
                is_ours = name.startswith(("node=", "shard=")) if not before else before.count("/") < _DEEPEST
                if is_ours:
                    pending.append((entry.path, f"{name}/"))
            elif before and entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    found[name] = StoredObject(name, status.st_size, status.st_mtime_ns // 1000)
    # A node without a file of a recording is a node all the same: nothing is known of it, and that is reported.
    full = {match[1] for name in found if (match := _PLACE.fullmatch(name)) and _day(match[3]) is not None}
    empty = [f"{node}{_OF_THE_NODE[0]}" for node in nodes if node not in full]
    return [*found.values(), *(StoredObject(name, 0, None) for name in empty)]


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest recording of a node, by the node's clock. `ahead_s`: how far that clock is ahead of the store's, at
    least; None where nothing shows it."""

    at_us: int
    ahead_s: float | None


def newest(found: Listing) -> dict[str, Newest]:
    """By the names of files, whatever window is chosen: a clock that is a year ahead shows nowhere else."""
    known: dict[str, Newest] = {}
    for item in found.items:
        for file in item.files:
            at_us = _time_of(file.name)
            if at_us is None:
                continue
            ahead_s = None if file.changed_us is None else (at_us - file.changed_us) / 1e6
            ahead_s = ahead_s if ahead_s is not None and ahead_s > TOO_FAR_AHEAD_S else None
            before = known.get(item.node)
            if before is not None:
                at_us = max(before.at_us, at_us)
                ahead_s = max((each for each in (before.ahead_s, ahead_s) if each is not None), default=None)
            known[item.node] = Newest(at_us, ahead_s)
    return known


def _time_of(name: str) -> int | None:
    """When what is in a file began, or its day."""
    if segment := _SEGMENT.fullmatch(name):
        return int(segment[1])
    dated = _DATED.fullmatch(name)
    if dated is None or not _is_day(dated[1]):
        return None
    return round(datetime.fromisoformat(dated[1]).replace(tzinfo=UTC).timestamp() * 1e6)


def _entries(folder: str, before: str, found: dict[str, StoredObject]) -> list[os.DirEntry[str]]:
    """What is in a folder. A node that may not be listed is there all the same: that its files cannot be read is damage
    of that node, and no reason to say nothing of the others."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
    except OSError:
        node = _NODE.match(before)
        if node is None:
            raise
        name = f"{node[0]}{_OF_THE_NODE[0]}"
        found.setdefault(name, StoredObject(name, 0, None))
        return []


def _items(objects: Sequence[StoredObject]) -> list[Item]:
    grouped: dict[tuple[str, str, str], list[StoredObject]] = defaultdict(list)
    for each in objects:
        match = _PLACE.fullmatch(each.name)
        if match is None:
            continue
        prefix, node, name = match.groups()
        day = _day(name)
        if day is not None and _is_text(node):
            grouped[node, day, prefix].append(StoredObject(name, each.size_bytes, each.changed_us))
    # A node that was moved to another shard is there twice for a while: what was written last counts.
    ordered = sorted(grouped.items(), key=lambda entry: (max(file.changed_us or 0 for file in entry[1]), entry[0][2]))
    latest = {(node, day): (prefix, files) for (node, day, prefix), files in ordered}
    return [
        Item(node, day, prefix, tuple(files), _fingerprint(files))
        for (node, day), (prefix, files) in sorted(latest.items())
    ]


def _day(name: str) -> str | None:
    """Which day a file of a node belongs to; None where it is none that is read."""
    if name in _OF_THE_NODE:
        return NODE_DAY
    if dated := _DATED.fullmatch(name):
        return dated[1] if _is_day(dated[1]) else None
    if segment := _SEGMENT.fullmatch(name):
        day = day_of(int(segment[1]))
        return day if _is_day(day) else None
    return None


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return text[:4] <= _LAST_YEAR


def _is_text(name: str) -> bool:
    """Names of files are bytes; no agent gives a node a name that is none."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def day_of(at_us: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(min(at_us // 1_000_000, 253_402_300_799)))


def _fingerprint(files: Sequence[StoredObject]) -> str:
    """Of names, sizes and times: whatever was written again since is read again."""
    lines = sorted(f"{file.name} {file.size_bytes} {file.changed_us}" for file in files)
    return hashlib.blake2b("\n".join(lines).encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()


class ItemStore:
    """The files of one item as a store: they were listed already, and nobody asks for that again."""

    def __init__(self, store: Store, item: Item) -> None:
        self._store, self._item = store, item
        self.place = f"{store.place.rstrip('/')}/{item.prefix}".rstrip("/")

    def folders(self) -> list[str]:
        return sorted({file.name.split("/", 1)[0] for file in self._item.files if "/" in file.name} | {"log"})

    def entries(self, prefix: str) -> list[StoredFile]:
        named = (StoredFile(file.name, file.size_bytes) for file in self._item.files if file.name.startswith(prefix))
        return sorted(named, key=lambda file: file.name)

    def open(self, name: str) -> BinaryIO:
        return self._store.open(self._item.prefix + name)

    def read(self, name: str) -> bytes:
        return self._store.read(self._item.prefix + name)

    def close(self) -> None:
        """The store under it goes on."""


def store_of(place: str) -> Any:
    """The store under a root, once for all its items."""
    return ObjectStore(place) if is_address(place) else Directory(Path(place))


def below(place: str, prefix: str) -> Path | str:
    """A folder under a root; what an address says after its ? stays at its end."""
    if not is_address(place):
        return Path(place) / prefix
    path, mark, options = place.partition("?")
    return f"{path.rstrip('/')}/{prefix}".rstrip("/") + mark + options


def node_prefixes(place: str) -> dict[str, str]:
    """Every node's name, and the folder under the root that holds its node= folder: "" or shard=HH/."""
    found: dict[str, str] = {}
    folders = store_of(place).folders()
    for shard in ["", *(f"{folder}/" for folder in folders if folder.startswith("shard="))]:
        inside = store_of(str(below(place, shard))).folders() if shard else folders
        found |= {name.removeprefix("node="): shard for name in inside if name.startswith("node=")}
    return found
