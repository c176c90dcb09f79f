"""The cgroup ledger: who made the zombies.

A cgroup that was removed and not yet released is a zombie: the kernel keeps it because a page, a socket or a descriptor
still points at it. Three tracepoints tell its life: cgroup_mkdir, cgroup_rmdir, cgroup_release. The ledger keeps
id -> (path, state) from the first to the last, and a line of numbers per normalised path.

It does not matter in which order the records arrive: they come from one ring per CPU, and a release may be read
before the rmdir it follows. It does matter when records are lost: then totals are still exact, because they come from
the events' own counters (`observe_counts`), but a line is only a lower bound, and says so (`exact`).

Keys are ids of one hierarchy (the one that owns the memory controller). Before 5.5 an id is used again after release,
so a mkdir for a known id starts it anew, and an inode is no id: directories that were there before are known by their
path until a record tells their id.

Bounded: at most MAX_IDS cgroups are followed one by one and at most MAX_LINES paths have a line of their own; what
does not fit is summed in the line of the tail, whose path is "". Whoever makes ever new names cannot take all lines
(the section on room)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import astuple, dataclass, field
from heapq import nlargest
from math import log
from typing import Any

from zombiescope._native import IdMap

# --- how many different names -----------------------------------------------------------------------------------------
# How many different texts there were, in little memory: exact up to EXACT of them, then an estimate.
#
# Of the first few the hashes are kept. After that a bit of BITS is set for each, and how many bits are still free tells
# how many there were (linear counting): 2 kB, about 1% off at ten thousand and 3% at a hundred thousand.

EXACT = 64
BITS = 1 << 14


class Distinct:
    __slots__ = ("_bits", "_few", "_set", "before")

    def __init__(self) -> None:
        self._few: set[int] = set()
        self._bits: bytearray | None = None
        self._set = 0
        self.before = 0
        """Counted by somebody else, earlier."""

    def add(self, text: str) -> None:
        number = hash(text)
        if self._bits is None:
            self._few.add(number)
            if len(self._few) <= EXACT:
                return
            self._bits = bytearray(BITS // 8)
            for one in self._few:
                self._mark(one)
            self._few.clear()
        self._mark(number)

    def _mark(self, number: int) -> None:
        assert self._bits is not None
        place, bit = number % BITS // 8, 1 << (number & 7)
        if not self._bits[place] & bit:
            self._bits[place] |= bit
            self._set += 1

    @property
    def count(self) -> int:
        if self._bits is None:
            return self.before + len(self._few)
        free = max(1, BITS - self._set)
        return self.before + round(BITS * log(BITS / free))


# --- ledger -----------------------------------------------------------------------------------------------------------

MAX_IDS = 1 << 18
MAX_LINES = 2048

LIVE, DYING, GONE = 0, 1, 2
_STATES = 3


@dataclass(frozen=True, slots=True)
class Creator:
    comm: str
    pid: int
    unit: str | None = None
    container: str | None = None
    uid: int | None = None
    exe: str | None = None

    @property
    def identity(self) -> tuple[str, str | None, str | None, int | None]:
        """What tells creators apart: one that takes another's name is not that one."""
        return self.comm, self.unit, self.container, self.uid


@dataclass(slots=True)
class Line:
    """What is known of all cgroups with one normalised path."""

    path: str
    created: int = 0
    removed: int = 0
    released: int = 0
    dying: int = 0
    live: int = 0
    names: Distinct = field(default_factory=Distinct)
    """The different paths of those that were created."""
    creators: dict[Hashable, tuple[int, Creator]] = field(default_factory=dict)
    changed: bool = True

    def made_by(self, creator: Creator) -> None:
        """Counts a creator; of many the most frequent are kept."""
        count, _ = self.creators.get(creator.identity, (0, creator))
        self.creators[creator.identity] = (count + 1, creator)
        if len(self.creators) > 8:
            del self.creators[min(self.creators, key=lambda one: self.creators[one][0])]

    @property
    def creator(self) -> Creator | None:
        """The process that made most of them, or None when all are older than the ledger."""
        return max(self.creators.values(), key=lambda entry: entry[0])[1] if self.creators else None


class Ledger:
    """Lines per path, and totals that stay exact when records are lost."""

    def __init__(self, normalise: Callable[[str], str]) -> None:
        self._normalise = normalise
        self._ids = IdMap()
        self._walked = IdMap()
        """Hash of a path -> line, of directories that are older than the ledger."""
        self._made_meanwhile: set[int] | None = set()
        """Hashes of paths made since the ledger began, until the walk over the directories is over."""
        self.lines: list[Line] = [Line("", changed=False)]
        self._numbers: dict[str, int] = {}
        self._room = LineRoom(MAX_LINES)
        self.received = {"mkdir": 0, "rmdir": 0, "release": 0}
        self.lost = {"mkdir": 0, "rmdir": 0, "release": 0}
        self.old_released = 0
        """Zombies older than the ledger that went; their release record named them."""
        self.broken_since_us: int | None = None
        """When lines stopped being exact: records were lost, or the recorder was down."""

    # --- events -------------------------------------------------------------------------------------------------

    def mkdir(self, key: int, path: str, creator: Creator | None) -> None:
        self.received["mkdir"] += 1
        number = self._line_number(path)
        line = self.lines[number]
        line.created += 1
        line.names.add(path)
        line.changed = True
        if creator is not None:
            line.made_by(creator)
        self._forget_walked(path)
        if self._made_meanwhile is not None and len(self._made_meanwhile) < MAX_IDS:
            self._made_meanwhile.add(_hash(path))
        known = self._ids.get(key)
        if known is not None:
            self._leave(known)
        elif len(self._ids) >= MAX_IDS:
            number = 0
        line = self.lines[number]
        line.live += 1
        self._ids.set(key, number * _STATES + LIVE)

    def rmdir(self, key: int, path: str) -> None:
        self.received["rmdir"] += 1
        known = self._ids.get(key)
        if known is not None and known % _STATES == DYING:  # its release was not seen, and the id is used again
            self._leave(known)
            known = None
        number = self._line_number(path) if known is None else known // _STATES
        line = self.lines[number]
        line.removed += 1
        line.changed = True
        if known is None:
            self._forget_walked(path)
        if known is not None and known % _STATES == GONE:  # its release was read first
            self._ids.pop(key)
            return
        if known is not None:
            self._leave(known)
        line.dying += 1
        self._ids.set(key, number * _STATES + DYING)

    def release(self, key: int, path: str) -> None:
        self.received["release"] += 1
        known = self._ids.get(key)
        number = self._line_number(path) if known is None else known // _STATES
        line = self.lines[number]
        line.released += 1
        line.changed = True
        if known is None:
            self.old_released += 1
            return
        self._leave(known)
        if known % _STATES == LIVE:  # its rmdir is still to come from another ring
            self._ids.set(key, number * _STATES + GONE)
        else:
            self._ids.pop(key)

    def rename(self, key: int, path: str) -> None:
        """v1 lets a cgroup be renamed; from then on it counts for its new path."""
        known = self._ids.get(key)
        if known is None:
            return
        number, state = self._line_number(path), known % _STATES
        self._leave(known)
        line = self.lines[number]
        line.live += state == LIVE
        line.dying += state == DYING
        line.changed = True
        self._ids.set(key, number * _STATES + state)

    def exists(self, path: str) -> None:
        """A directory that was there before the ledger, found by the one walk at the start."""
        place = _hash(path)
        if self._made_meanwhile and place in self._made_meanwhile:
            return  # its mkdir was seen: it is followed by its id
        if self._walked.get(place) is None and len(self._walked) < MAX_IDS:
            number = self._line_number(path)
            self.lines[number].live += 1
            self._walked.set(place, number)

    def walked(self) -> None:
        """The walk is over: what is made from now on was not there."""
        self._made_meanwhile = None

    def _forget_walked(self, path: str) -> None:
        number = self._walked.pop(_hash(path)) if len(self._walked) else None
        if number is not None:
            self.lines[number].live -= 1

    def _leave(self, known: int) -> None:
        line, state = self.lines[known // _STATES], known % _STATES
        line.live -= state == LIVE
        line.dying -= state == DYING
        line.changed = True

    # --- lines --------------------------------------------------------------------------------------------------

    def _line_number(self, path: str) -> int:
        name = self._normalise(path)
        number = self._numbers.get(name)
        return self._line_named(self._room.family(name)) if number is None else number

    def _line_named(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            if self._room.is_used_up(name) or (len(self._numbers) >= MAX_LINES and not self._evict()):
                return 0
            number = self._free_number()
            self.lines[number] = Line(name)
            self._numbers[name] = number
            self._room.add(name)
        return number

    def line_of(self, path: str) -> Line | None:
        """The line under which a path counts; None: the tail."""
        name = self._normalise(path)
        number = self._numbers.get(name, self._numbers.get(self._room.family(name)))
        return None if number is None else self.lines[number]

    def _free_number(self) -> int:
        for number in range(1, len(self.lines)):
            if self.lines[number].path == "":
                return number
        self.lines.append(Line(""))
        return len(self.lines) - 1

    def _evict(self) -> bool:
        """Folds the quarter of the lines that matter least, and follow no cgroup, into the tail."""
        idle = [
            number for number in self._numbers.values() if not self.lines[number].live and not self.lines[number].dying
        ]
        idle.sort(key=lambda number: self.lines[number].created)
        tail = self.lines[0]
        for number in idle[: max(1, MAX_LINES // 4)]:
            line = self.lines[number]
            tail.created += line.created
            tail.removed += line.removed
            tail.released += line.released
            tail.changed = True
            del self._numbers[line.path]
            self._room.remove(line.path)
            self.lines[number] = Line("", changed=False)
        return bool(idle)

    def take_changed(self, limit: int = 256) -> list[Line]:
        """Lines that changed since they were last taken, the heaviest first; the rest waits for the next call."""
        changed = [line for line in self.lines if line.changed]
        changed.sort(key=lambda line: (line.dying, line.created), reverse=True)
        for line in changed[:limit]:
            line.changed = False
        return changed[:limit]

    def leaking(self, most: int = 3) -> Iterator[str]:
        """The paths with most dying cgroups; nothing is looked at before the first is asked for."""
        worst = nlargest(most, self.lines, key=lambda line: line.dying)
        yield from (line.path for line in worst if line.dying and line.path)

    def mark_all_changed(self) -> None:
        for line in self.lines:
            line.changed = bool(line.path or line.created or line.dying)

    # --- exactness ----------------------------------------------------------------------------------------------

    def observe_counts(self, mkdir: int, rmdir: int, release: int, now_us: int) -> None:
        """What the events themselves counted since the ledger started; tells how many records never reached us."""
        for name, count in (("mkdir", mkdir), ("rmdir", rmdir), ("release", release)):
            missing = max(0, count - self.received[name])
            if missing > self.lost[name]:
                self.lost[name] = missing
                self.broken_since_us = self.broken_since_us or now_us

    @property
    def created(self) -> int:
        return self.received["mkdir"] + self.lost["mkdir"]

    @property
    def removed(self) -> int:
        return self.received["rmdir"] + self.lost["rmdir"]

    @property
    def released(self) -> int:
        return self.received["release"] + self.lost["release"]

    @property
    def lost_records(self) -> int:
        return sum(self.lost.values())

    @property
    def exact(self) -> bool:
        return self.broken_since_us is None

    @property
    def dying(self) -> int:
        """Zombies that the ledger follows one by one."""
        return sum(line.dying for line in self.lines)

    @property
    def live(self) -> int:
        return sum(line.live for line in self.lines)

    # --- over a restart -----------------------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """What a restarted recorder needs: zombies with their lines. The living are found again by the walk."""
        keys, values = self._ids.items()
        zombies: dict[int, list[int]] = {}
        for key, value in zip(keys, values, strict=True):
            if value % _STATES == DYING:
                zombies.setdefault(value // _STATES, []).append(key)
        return {"lines": [self._save_line(number, ids) for number, ids in zombies.items()]}

    def _save_line(self, number: int, ids: list[int]) -> dict[str, Any]:
        line, creator = self.lines[number], self.lines[number].creator
        ids.sort()
        steps = [after - before for before, after in zip([0, *ids], ids, strict=False)]
        return {
            "path": line.path,
            "created": line.created,
            "removed": line.removed,
            "released": line.released,
            "names": line.names.count,
            "creator": creator and astuple(creator),
            "ids": steps,
        }

    def restore(self, saved: dict[str, Any], now_us: int) -> None:
        """Takes over the zombies of an earlier run of the same boot. Nobody watched meanwhile: lines are not exact."""
        lines: Iterable[dict[str, Any]] = saved.get("lines", [])
        for entry in lines:
            number = self._line_named(str(entry["path"])) if entry["path"] else 0
            line = self.lines[number]
            line.created += int(entry["created"])
            line.removed += int(entry["removed"])
            line.released += int(entry["released"])
            line.names.before += int(entry.get("names", 0))
            if entry.get("creator"):
                line.made_by(Creator(*entry["creator"]))
            key = 0
            for step in entry["ids"]:
                key += int(step)
                if len(self._ids) < MAX_IDS and self._ids.get(key) is None:
                    self._ids.set(key, number * _STATES + DYING)
                    line.dying += 1
            self.broken_since_us = now_us


def _hash(path: str) -> int:
    return hash(path) & 0x7FFF_FFFF_FFFF_FFFF


# --- room for another line --------------------------------------------------------------------------------------------
# Which paths have a line of the ledger to themselves: so that whoever makes ever new names does not take all lines.
#
# Below one directory MAX_SIBLINGS names have lines, further ones share "directory/*"; and below one top directory there
# are half of all lines at most, what is more goes to the tail.

MAX_SIBLINGS = 256
MAX_DEPTH = 32
"""Parts of a path that a line's name has at most."""


class LineRoom:
    def __init__(self, lines: int) -> None:
        self._most_below_top = max(1, lines // 2)
        self._names: set[str] = set()
        self._siblings: Counter[str] = Counter()
        self._below_top: Counter[str] = Counter()

    def family(self, name: str) -> str:
        """The name under which a new path is counted: its own, or that of all further ones in a directory."""
        place, *parts = name.split("/", MAX_DEPTH)
        for part in parts[: MAX_DEPTH - 1]:
            own = f"{place}/{part}"
            is_full = own not in self._names and self._siblings[place] >= MAX_SIBLINGS
            place = f"{place}/*" if is_full else own
        return place

    def is_used_up(self, name: str) -> bool:
        """Whether its top directory has had its share."""
        return self._below_top[_top(name)] >= self._most_below_top

    def add(self, name: str) -> None:
        self._names.add(name)
        self._siblings[name.rpartition("/")[0]] += 1
        self._below_top[_top(name)] += 1

    def remove(self, name: str) -> None:
        self._names.discard(name)
        for counts, key in ((self._siblings, name.rpartition("/")[0]), (self._below_top, _top(name))):
            counts[key] -= 1
            if counts[key] <= 0:
                del counts[key]


def _top(name: str) -> str:
    """The first directory of a path."""
    return name.split("/", 2)[1] if name.startswith("/") else name
