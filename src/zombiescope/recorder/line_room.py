"""Which paths have a line of the ledger to themselves: so that whoever makes ever new names does not take all lines.

Below one directory MAX_SIBLINGS names have lines, further ones share "directory/*"; and below one top directory there
are half of all lines at most, what is more goes to the tail."""

from __future__ import annotations

from collections import Counter

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
