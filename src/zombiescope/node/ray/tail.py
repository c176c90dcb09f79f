"""Files that grow, read from where we were: those of one session, by a pattern.

At the start only the end of a file counts: what happened before is not news. A file that became shorter, or another
file under its name, is read from its beginning. What is read in one look is bounded; the rest waits for the next.

The folders are whatever a process called "raylet" says: files are its user's own or are not opened, and names, lines
that have no end yet and places in files have bounds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from zombiescope.node.ray.raylet import open_of

MOST_FILES = 512
MOST_NAMES = 20_000
"""Looked at in a folder; beyond that it is none of Ray's."""
LOOK_BYTES = 4 << 20
LINE_BYTES = 1 << 20
WAITING_BYTES = 4 << 20
"""Of lines that have no end yet, in all files of a session."""


@dataclass(slots=True)
class _Place:
    inode: int
    offset: int
    rest: bytes = b""


class Tail:
    def __init__(self, folders: tuple[Path, ...], uid: int, ending: str = ".log") -> None:
        """`uid`: whose files they are."""
        self._folders = folders
        self._uid = uid
        self._ending = ending
        self._places: dict[Path, _Place] = {}
        self._started = False

    def lines(self) -> Iterator[bytes]:
        """What was added since the last look."""
        budget = LOOK_BYTES
        files = self._files()
        self._places = {path: self._places[path] for path in files if path in self._places}
        for path in files:
            with suppress(OSError):
                descriptor = open_of(self._uid, path)
                try:
                    for line in self._read(path, descriptor, budget):
                        budget -= len(line) + 1
                        yield line
                finally:
                    os.close(descriptor)
            if budget <= 0:
                break
        self._started = True

    def _files(self) -> list[Path]:
        found: list[Path] = []
        for folder in self._folders:
            with suppress(OSError), os.scandir(folder) as entries:
                found += [
                    folder / entry.name for entry in islice(entries, MOST_NAMES) if entry.name.endswith(self._ending)
                ]
        # Files without news are cheap to look at, but a session may leave very many: one for each worker.
        return sorted(found, key=lambda path: path.name)[:MOST_FILES]

    def _read(self, path: Path, descriptor: int, budget: int) -> Iterator[bytes]:
        status = os.fstat(descriptor)
        place = self._places.get(path)
        if place is None or place.inode != status.st_ino or place.offset > status.st_size:
            place = _Place(status.st_ino, 0 if self._started else status.st_size)
            self._places[path] = place
        data = os.pread(descriptor, max(0, min(budget, status.st_size - place.offset)), place.offset)
        place.offset += len(data)
        *lines, place.rest = (place.rest + data).split(b"\n")
        waiting = sum(len(each.rest) for each in self._places.values())
        if len(place.rest) > LINE_BYTES or waiting > WAITING_BYTES:
            place.rest = b""
        yield from lines
