"""Dumps of PyTorch's flight recorder: which rank of a job is behind in which collective.

A dump is a pickle that each rank writes when its watchdog times out (TORCH_NCCL_DUMP_ON_TIMEOUT, a file NAME_RANK), or
the JSON of the same. Read: `entries`, each a collective with its process group, number (`collective_seq_id`), name,
state (scheduled, started, completed) and Python frames; `pg_config`, the ranks of each group. Format versions 2.x.

A pickle can run code. These hold nothing but dicts, lists, strings, numbers and None, so every reference to a class or
a function is refused. Files and entries are bounded.
"""

from __future__ import annotations

import io
import pickle
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zombiescope.base import json as _json
from zombiescope.base.errors import UserError

MOST_BYTES = 256 << 20
MOST_ENTRIES = 1_000_000
MOST_FILES = 4096
_RANK = re.compile(r"(\d{1,7})(?:\.(?:pkl|pickle|json))?$")


class NotADumpError(UserError):
    """The file is no dump of the flight recorder."""


@dataclass(frozen=True, slots=True)
class Collective:
    """The last one that a rank entered in a process group."""

    group: str
    sequence: int
    name: str
    state: str
    place: str | None
    """The innermost line of a person's own code."""


@dataclass(frozen=True, slots=True)
class Dump:
    rank: int
    last: dict[str, Collective]
    """By process group."""
    members: dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Behind:
    """A rank that entered fewer collectives of a group than the others, or another one in its place."""

    rank: int
    group: str
    at: Collective | None
    """None: there is no dump of it."""
    others: Collective
    waiting: int


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it refers to {module}.{name}")


def read(path: Path) -> Dump:
    """Raises NotADumpError, OSError."""
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise NotADumpError(f"{path} is larger than {MOST_BYTES >> 20} MB", "name the dumps of the flight recorder")
    found = _RANK.search(path.name)
    if found is None:
        raise NotADumpError(f"{path}: its name does not end in the rank", "rename it to NAME_RANK, as PyTorch does")
    said = _loaded(path)
    if not isinstance(said, dict) or not isinstance(said.get("entries"), list):
        raise NotADumpError(f"{path} is not a dump of PyTorch's flight recorder", "name files that PyTorch wrote")
    return Dump(int(found[1]), _last(said["entries"][-MOST_ENTRIES:]), _members(said.get("pg_config")))


def _loaded(path: Path) -> Any:
    data = path.read_bytes()
    try:
        return _json.loads(data) if data[:1] == b"{" else _Plain(io.BytesIO(data)).load()
    except Exception as error:
        raise NotADumpError(f"{path} cannot be read: {type(error).__name__}: {str(error)[:200]}") from error


def _last(entries: Iterable[Any]) -> dict[str, Collective]:
    found: dict[str, Collective] = {}
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("is_p2p"):
            continue
        sequence, group = entry.get("collective_seq_id"), _group(entry)
        if type(sequence) is not int or group is None:
            continue
        if group not in found or sequence >= found[group].sequence:
            name, state = (str(entry.get(key))[:200] for key in ("profiling_name", "state"))
            found[group] = Collective(group, sequence, name, state, _place(entry.get("frames")))
    return found


def _group(entry: dict[str, Any]) -> str | None:
    group = entry.get("process_group")
    if isinstance(group, list | tuple) and group:
        return str(group[0])[:200]
    return None if entry.get("pg_id") is None else str(entry["pg_id"])[:200]


def _place(frames: Any) -> str | None:
    """Innermost first, as PyTorch writes them."""
    for frame in frames if isinstance(frames, list) else ():
        if isinstance(frame, dict) and "/site-packages/" not in str(frame.get("filename")):
            file = str(frame.get("filename")).rpartition("/")[2]
            return f"{str(frame.get('name'))[:200]}, {file[:200]}:{frame.get('line')}"
    return None


def _members(groups: Any) -> dict[str, tuple[int, ...]]:
    """`ranks` is a list, or one that was printed."""
    found: dict[str, tuple[int, ...]] = {}
    for name, about in groups.items() if isinstance(groups, dict) else ():
        ranks = about.get("ranks") if isinstance(about, dict) else None
        words = re.findall(r"\d{1,7}", ranks) if isinstance(ranks, str) else ranks if isinstance(ranks, list) else ()
        found[str(name)] = tuple(int(word) for word in words[: 1 << 20] if str(word).isdigit())
    return found


def files(place: Path) -> list[Path]:
    """A dump, or a directory of them."""
    if not place.is_dir():
        return [place]
    found = sorted(one for one in place.iterdir() if one.is_file() and _RANK.search(one.name))
    return found[:MOST_FILES]


def behind(dumps: Iterable[Dump]) -> Iterator[Behind]:
    """Who did not enter the collective in which most ranks of its group wait."""
    known = list(dumps)
    for group in sorted({name for dump in known for name in dump.last}):
        there = [dump for dump in known if group in dump.last]
        latest = max(dump.last[group].sequence for dump in there)
        waiting = [dump for dump in there if dump.last[group].sequence == latest]
        names = Counter(dump.last[group].name for dump in waiting)
        usual = names.most_common(1)[0][0]
        others = next(dump.last[group] for dump in waiting if dump.last[group].name == usual)
        if others.state == "completed":
            continue
        for dump in there:
            mine = dump.last[group]
            if mine.sequence < latest or mine.name != usual:
                yield Behind(dump.rank, group, mine, others, len(waiting))
        # The default group is called "" there and by its number in entries.
        named = (dump.members.get(group) or dump.members.get("") for dump in there)
        members = next((ranks for ranks in named if ranks), ())
        for rank in sorted(set(members) - {dump.rank for dump in known}):
            yield Behind(rank, group, None, others, len(waiting))
