"""From a mapping to the symbol table of its file, and from there to names, with as few opens as can be.

What maps prints about a file (device, inode, path) leads to its key in the cache for a minute, without
opening it: a thousand short processes that run the same program cost one open. The numbers of a deleted file
may be given to another within that minute, but hardly together with its path. Records may have a build id instead of
the numbers; a path means a file only in one mount namespace below one root, so that is part of what leads to the key.

A mapping that carries a build id needs no file at all while the cache holds a file of the machine's own with that id,
which is how processes that are gone get their names.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from zombiescope._native import ElfError
from zombiescope.symbols.elf import ElfCache, ElfKey
from zombiescope.symbols.maps import Mapping
from zombiescope.symbols.process import LiveProcess, Tally, open_ours
from zombiescope.symbols.separate_debug import BinaryPlace, FunctionLookup

KNOWN_FOR_S = 60.0
UNKNOWN_FOR_S = 10.0
MAX_FILES = 2048
MAX_OPEN = 16


class MappedFile(NamedTuple):
    """A mapping's file in the cache."""

    key: ElfKey
    table: FunctionLookup


class _Known(NamedTuple):
    key: ElfKey | None
    until_s: float


class MappedFiles:
    """Files behind mappings; used by one thread, and within one `with` block holds what it opens."""

    def __init__(self, cache: ElfCache, tally: Tally, proc: str) -> None:
        self._cache = cache
        self._tally = tally
        self._proc = proc
        self._known: OrderedDict[tuple[object, ...], _Known] = OrderedDict()
        self._places: OrderedDict[ElfKey, tuple[int, Mapping]] = OrderedDict()
        self._open: dict[ElfKey, int] = {}
        self._out_of_reach: set[ElfKey] = set()

    def __enter__(self) -> MappedFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._out_of_reach.clear()
        while self._open:
            os.close(self._open.popitem()[1])

    def find(self, process: LiveProcess | None, mapping: Mapping) -> MappedFile | None:
        """The table of the file behind a mapping; None when it cannot be had."""
        if mapping.build_id is not None and (process is None or process.ours):
            shared = self._cache.shared(mapping.build_id)
            if shared is not None:
                return MappedFile(*shared)
        when_s = mapping.mapped_at_s if mapping.build_id is None else None
        seen_from = None if process is None else process.root
        mark = (seen_from, mapping.dev, mapping.inode, mapping.path, mapping.build_id, when_s)
        known = self._known.get(mark)
        now_s = time.monotonic()
        if known is not None and now_s < known.until_s:
            if known.key is None:
                return None
            table = self._cache.get(known.key)
            if table is not None:
                return MappedFile(known.key, table)
        return self._find_anew(process, mapping, mark, now_s)

    def _find_anew(
        self, process: LiveProcess | None, mapping: Mapping, mark: tuple[object, ...], now_s: float
    ) -> MappedFile | None:
        fd = self._open_file(process, mapping)
        if fd is None:
            # That a process went away while we looked says nothing about the file.
            if process is None or process.still_there():
                self._know(mark, _Known(None, now_s + UNKNOWN_FOR_S))
            return None
        with _closed_on_failure(fd):
            key, table = self._cache.load(fd, self._place(process, mapping))
        if table is None:
            os.close(fd)
            self._know(mark, _Known(None, now_s + UNKNOWN_FOR_S))
            return None
        self._know(mark, _Known(key, now_s + KNOWN_FOR_S))
        self._hold(key, fd, process, mapping)
        return MappedFile(key, table)

    def _place(self, process: LiveProcess | None, mapping: Mapping) -> BinaryPlace:
        if process is None:
            return BinaryPlace(mapping.path)
        return BinaryPlace(mapping.path, f"{self._proc}/{process.pid}/root", process.ours)

    def _know(self, mark: tuple[object, ...], known: _Known) -> None:
        self._known[mark] = known
        self._known.move_to_end(mark)
        if len(self._known) > MAX_FILES:
            self._known.popitem(last=False)

    def _hold(self, key: ElfKey, fd: int, process: LiveProcess | None, mapping: Mapping) -> None:
        if key in self._open:
            os.close(self._open.pop(key))
        elif len(self._open) == MAX_OPEN:
            os.close(self._open.popitem()[1])
        self._open[key] = fd
        if process is not None:
            self._places[key] = (process.pid, mapping)
            self._places.move_to_end(key)
            if len(self._places) > MAX_FILES:
                self._places.popitem(last=False)

    def name(self, process: LiveProcess | None, mapping: Mapping, file: MappedFile, index: int) -> bytes | None:
        """The name of a function of a file that find() gave."""
        if file.table.names_kept:
            return file.table.name(index)
        if file.key not in self._open and file.key not in self._out_of_reach:
            self._open_again(process, mapping, file.key)
        fd = self._open.get(file.key)
        return None if fd is None else file.table.name(index, fd)

    def _open_again(self, process: LiveProcess | None, mapping: Mapping, key: ElfKey) -> None:
        fd = self._open_same(process, mapping, key)
        if fd is not None:
            self._hold(key, fd, process, mapping)
        elif (fd := self._open_elsewhere(key)) is not None:
            self._hold(key, fd, None, mapping)
        else:
            self._out_of_reach.add(key)

    def _open_elsewhere(self, key: ElfKey) -> int | None:
        """Through the process that had the file mapped when it was last opened."""
        if key not in self._places:
            return None
        pid, mapping = self._places[key]
        try:
            other = LiveProcess(pid, self._proc)
        except OSError:
            del self._places[key]
            return None
        try:
            return self._open_same(other, mapping, key)
        finally:
            other.close()

    def _open_same(self, process: LiveProcess | None, mapping: Mapping, key: ElfKey) -> int | None:
        fd = self._open_file(process, mapping)
        if fd is None:
            return None
        with _closed_on_failure(fd):
            try:
                now = self._cache.key(fd)
                if now.build_id == key.build_id and key.file.is_still(now.file):
                    return fd
            except ElfError as fault:
                self._tally.failures[str(fault)] += 1
        os.close(fd)
        return None

    def _open_file(self, process: LiveProcess | None, mapping: Mapping) -> int | None:
        fd = process.open_mapped(mapping, self._tally) if process is not None else None
        if fd is None and mapping.kind == "file" and not mapping.deleted:
            fd = self._open_after_exit(mapping)
        return fd

    def _open_after_exit(self, mapping: Mapping) -> int | None:
        # Our own root, and that of the machine where we run in a container but in the machine's PID
        # namespace.
        for root in ("/", f"{self._proc}/1/root"):
            try:
                fd = open_ours(mapping, self._tally, root)
            except PermissionError:
                self._tally.denied["file"] += 1
            except (OSError, ElfError):
                continue
            else:
                if fd is not None and self._believable(fd, mapping):
                    return fd
        return None

    def _believable(self, fd: int, mapping: Mapping) -> bool:
        if mapping.build_id is not None or _older(fd, mapping):
            return True
        self._tally.failures["may have changed since"] += 1
        os.close(fd)
        return False


@contextmanager
def _closed_on_failure(fd: int) -> Iterator[None]:
    """Whatever is raised inside costs one answer (recorder/worker.py), and no descriptor."""
    try:
        yield
    except BaseException:
        os.close(fd)
        raise


def _older(fd: int, mapping: Mapping) -> bool:
    status = os.fstat(fd)
    if mapping.mapped_at_s is None:
        # From maps a moment ago: device and inode are known to be the same, and that is enough.
        return mapping.inode != 0
    # Packages install files with the time of their build: only ctime says when the file came to be here.
    return max(status.st_mtime, status.st_ctime) < mapping.mapped_at_s
