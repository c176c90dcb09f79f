"""ELF files of running processes: opened inside their own root, symbol tables kept within a budget.

A file is opened in two steps: first as a place (O_PATH), whose type is looked at, then for reading. A path
inside a container is chosen by whoever runs there and may by now name a device or a pipe, and opening one of
those acts. Links are followed inside the given root only.

No descriptor is kept: an open file of a container would keep its file system from being unmounted.
"""

from __future__ import annotations

import os
import stat
import time
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from zombiescope._in_root import place_in_root
from zombiescope._native import ElfError, SymbolTable, elf_build_id

if TYPE_CHECKING:
    from zombiescope.symbols.separate_debug import BinaryPlace, FunctionLookup, SeparateDebug

SYMBOL_BYTES = 12
KEEP_NAMES_BYTES = 1 << 16  # with names, a table of libc or of a Debian python3 is twice its size

BURST_S = 1.0
SHARE = 0.01
PUT_OFF = "put off: too many files for the time allowed"

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class FileIdentity(NamedTuple):
    """Stands for a file without a build id, for as long as nobody writes to it."""

    dev: int
    inode: int
    size: int
    mtime_ns: int


ElfKey = bytes | FileIdentity
K = TypeVar("K")
V = TypeVar("V")


def identity(fd: int) -> FileIdentity:
    """Which file this is."""
    status = os.fstat(fd)
    return FileIdentity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def open_elf(path: str, root_fd: int, *, links: bool = True) -> int:
    """Open the regular file `path` for reading, as a process whose root directory is `root_fd` would find it.

    Without `links` the file itself may be none. OSError as open() gives it; ElfError when it is no regular file.
    """
    place = place_in_root(os.fsencode(path), root_fd, links=links)
    try:
        return reopen(place)
    finally:
        os.close(place)


def reopen(place: int) -> int:
    """Open for reading what an O_PATH descriptor points at, if it is a regular file."""
    if not stat.S_ISREG(os.fstat(place).st_mode):
        raise ElfError("it is not a regular file")
    return os.open(f"/proc/self/fd/{place}", _READ)


class ElfCache:
    """Symbol tables by build id, the least recently used dropped first; used by one thread.

    Reading tables costs CPU time too, and where more files are in use than there is room for they would be
    read over and over: BURST_S of CPU time may be spent on it at once, and SHARE of one core over time.
    """

    def __init__(
        self,
        max_bytes: int = 8 << 20,
        max_failures: int = 1024,
        keep_names_bytes: int = KEEP_NAMES_BYTES,
        apart: SeparateDebug | None = None,
    ) -> None:
        self.max_bytes = max_bytes
        self.nbytes = 0
        self.hits = 0
        self.misses = 0
        self.evicted = 0
        self.failures: Counter[str] = Counter()
        self._apart = apart
        self._tables: OrderedDict[ElfKey, FunctionLookup] = OrderedDict()
        self._failed: OrderedDict[ElfKey, str] = OrderedDict()
        self._keys: OrderedDict[FileIdentity, ElfKey] = OrderedDict()
        self._max_failures = max_failures
        self._keep_names_bytes = min(keep_names_bytes, max_bytes // 16)
        self._allowance_s = BURST_S
        self._allowed_at_s = time.monotonic()

    def __len__(self) -> int:
        return len(self._tables)

    def get(self, key: ElfKey) -> FunctionLookup | None:
        """The table, if it is held."""
        table = self._tables.get(key)
        if table is not None:
            self.hits += 1
            self._tables.move_to_end(key)
        return table

    def failure(self, key: ElfKey) -> str | None:
        """Why this file has no table, if that is known."""
        return self._failed.get(key)

    def key(self, fd: int) -> ElfKey:
        """The build id of an open file, or its identity; ElfError when it is not an ELF file."""
        file = identity(fd)
        key = self._keys.get(file)
        if key is None:
            key = elf_build_id(fd) or file
            _remember(self._keys, file, key, self._max_failures)
        return key

    def load(self, fd: int, place: BinaryPlace | None = None) -> tuple[ElfKey, FunctionLookup | None]:
        """The table of an open file, read now if it is not held; None when it has none (see failure()).

        `place` is where it was found, for symbols that are beside it.
        """
        try:
            key = self.key(fd)
        except ElfError as fault:
            return self._fail(identity(fd), str(fault)), None
        table = self.get(key)
        if table is None and key not in self._failed:
            table = self._read_within_allowance(key, fd, place)
        return key, table

    def _read_within_allowance(self, key: ElfKey, fd: int, place: BinaryPlace | None) -> FunctionLookup | None:
        now_s = time.monotonic()
        self._allowance_s = min(BURST_S, self._allowance_s + SHARE * (now_s - self._allowed_at_s))
        self._allowed_at_s = now_s
        if self._allowance_s <= 0:
            self.failures[PUT_OFF] += 1
            return None
        before_s = time.thread_time()
        table = self._read(key, fd, place)
        self._allowance_s -= time.thread_time() - before_s
        return table

    def _read(self, key: ElfKey, fd: int, place: BinaryPlace | None) -> FunctionLookup | None:
        self.misses += 1
        table: FunctionLookup
        try:
            # Three quarters for symbols, so that one table with its names never exceeds the whole.
            most = self.max_bytes * 3 // 4 // SYMBOL_BYTES
            program = SymbolTable(fd, most, self._keep_names_bytes)
        except ElfError as fault:
            self._fail(key, str(fault))
            return None
        table = program
        if self._apart is not None:
            try:
                table = self._apart.table(fd, program, place, most, self._keep_names_bytes)
            except ElfError as fault:
                self.failures[str(fault)] += 1
            except OSError as fault:
                self.failures[fault.strerror or "unknown"] += 1
        self._tables[key] = table
        self.nbytes += table.nbytes
        while self.nbytes > self.max_bytes and len(self._tables) > 1:
            _, dropped = self._tables.popitem(last=False)
            self.nbytes -= dropped.nbytes
            self.evicted += 1
        return table

    def _fail(self, key: ElfKey, why: str) -> ElfKey:
        if self._failed.get(key) != why:
            self.failures[why] += 1
        _remember(self._failed, key, why, self._max_failures)
        return key


def _remember(known: OrderedDict[K, V], key: K, value: V, limit: int) -> None:
    known[key] = value
    if len(known) > limit:
        known.popitem(last=False)
