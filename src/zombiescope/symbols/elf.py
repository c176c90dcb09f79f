"""ELF files of running processes: opened inside their own root, symbol tables kept within a budget.

A file is opened in two steps: first as a place (O_PATH), whose type is looked at, then for reading. A path
inside a container is chosen by whoever runs there and may by now name a device or a pipe, and opening one of
those acts. Links are followed inside the given root only.

No descriptor is kept: an open file of a container would keep its file system from being unmounted.

A build id is no identity: it is a note in the file, and whoever makes a file can copy the note of another. A table
belongs to the file it was read from (device, inode, size, times, owner). By build id alone it is found only if the file
is the machine's own: root's, or ours, writable by nobody else, and in the root that we have too. That is for processes
that are gone; a table of a container, or of a user, names functions of that very file only.
"""

from __future__ import annotations

import os
import stat
import time
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from zombiescope._native import ElfError, SymbolTable, elf_build_id
from zombiescope.base.in_root import place_in_root

if TYPE_CHECKING:
    from zombiescope.symbols.separate_debug import BinaryPlace, FunctionLookup, SeparateDebug

SYMBOL_BYTES = 12
KEEP_NAMES_BYTES = 1 << 16  # with names, a table of libc or of a Debian python3 is twice its size

BURST_S = 1.0
SHARE = 0.005
OWNER_BURST_S = 0.25
OWNER_SHARE = 0.00125
MAX_OWNERS = 256
PUT_OFF = "put off: too many files for the time allowed"

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class FileIdentity(NamedTuple):
    """One file, for as long as nobody writes to it. Times of contents can be set at will, that of the inode cannot."""

    dev: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    uid: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileIdentity:
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_uid)

    def is_still(self, now: FileIdentity) -> bool:
        """The same file, perhaps renamed or deleted since, as an upgrade does with what still runs. Its owner could
        have written to it and set its time back: then the names of his own file are his own doing."""
        return self._replace(ctime_ns=0) == now._replace(ctime_ns=0)


class ElfKey(NamedTuple):
    """What a table belongs to: a file, and the build that it says it is."""

    build_id: bytes | None
    file: FileIdentity


K = TypeVar("K")
V = TypeVar("V")


def identity(fd: int) -> FileIdentity:
    """Which file this is."""
    return FileIdentity.of(os.fstat(fd))


def of_the_machine(status: os.stat_result) -> bool:
    """Whether only root, or we ourselves, may have written this file."""
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022


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


class _Budget:
    """CPU time that may be spent: some at once, and a share of a core over time."""

    __slots__ = ("_at_s", "_burst_s", "_left_s", "_share")

    def __init__(self, burst_s: float, share: float, now_s: float) -> None:
        self._burst_s, self._share = burst_s, share
        self._left_s, self._at_s = burst_s, now_s

    def has_any(self, now_s: float) -> bool:
        self._left_s = min(self._burst_s, self._left_s + self._share * (now_s - self._at_s))
        self._at_s = now_s
        return self._left_s > 0

    def spend(self, cpu_s: float) -> None:
        self._left_s -= cpu_s


class ElfCache:
    """Symbol tables by file, the least recently used dropped first; used by one thread.

    Reading tables costs CPU time too, and where more files are in use than there is room for they would be
    read over and over: BURST_S of CPU time may be spent on it at once, and SHARE of one core over time; as much again
    on files that are not the machine's own, of which no owner (a user on one file system) has more than a quarter. So
    whoever makes files that take long to read has no names for his own, and the machine's programs have theirs.
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
        self._shared: dict[bytes, ElfKey] = {}
        self._uses: Counter[int] = Counter()
        self._alike: dict[bytes, SymbolTable] = {}
        self._max_failures = max_failures
        self._keep_names_bytes = min(keep_names_bytes, max_bytes // 16)
        now_s = time.monotonic()
        self._machine, self._others = (_Budget(BURST_S, SHARE, now_s) for _ in range(2))
        self._owners: OrderedDict[tuple[int, int], _Budget] = OrderedDict()

    def __len__(self) -> int:
        return len(self._tables)

    def get(self, key: ElfKey) -> FunctionLookup | None:
        """The table, if it is held."""
        table = self._tables.get(key)
        if table is not None:
            self.hits += 1
            self._tables.move_to_end(key)
        return table

    def shared(self, build_id: bytes) -> tuple[ElfKey, FunctionLookup] | None:
        """The table of a file of the machine's own with this build id, if it is held."""
        key = self._shared.get(build_id)
        table = None if key is None else self.get(key)
        return None if key is None or table is None else (key, table)

    def failure(self, key: ElfKey) -> str | None:
        """Why this file has no table, if that is known."""
        return self._failed.get(key)

    def key(self, fd: int) -> ElfKey:
        """An open file, and its build id; ElfError when it is not an ELF file."""
        file = identity(fd)
        key = self._keys.get(file)
        if key is None:
            key = ElfKey(elf_build_id(fd), file)
            _remember(self._keys, file, key, self._max_failures)
        return key

    def load(self, fd: int, place: BinaryPlace | None = None) -> tuple[ElfKey, FunctionLookup | None]:
        """The table of an open file, read now if it is not held; None when it has none (see failure()).

        `place` is where it was found, for symbols that are beside it.
        """
        try:
            key = self.key(fd)
        except ElfError as fault:
            return self._fail(ElfKey(None, identity(fd)), str(fault)), None
        table = self.get(key)
        trusted = (place is None or place.ours) and of_the_machine(os.fstat(fd))
        if table is None and key not in self._failed:
            table = self._read_within_budget(key, fd, place, trusted)
        if table is not None and trusted and key.build_id is not None:
            self._shared[key.build_id] = key
        return key, table

    def _read_within_budget(
        self, key: ElfKey, fd: int, place: BinaryPlace | None, trusted: bool
    ) -> FunctionLookup | None:
        now_s = time.monotonic()
        budgets = [self._machine] if trusted else [self._others, self._owner(key.file, now_s)]
        if not all(budget.has_any(now_s) for budget in budgets):
            self.failures[PUT_OFF] += 1
            return None
        before_s = time.thread_time()
        table = self._read(key, fd, place)
        for budget in budgets:
            budget.spend(time.thread_time() - before_s)
        return table

    def _owner(self, file: FileIdentity, now_s: float) -> _Budget:
        """Of everybody else: a container has a file system of its own, whoever its files belong to."""
        who = (file.dev, file.uid)
        if who not in self._owners:
            _remember(self._owners, who, _Budget(OWNER_BURST_S, OWNER_SHARE, now_s), MAX_OWNERS)
        self._owners.move_to_end(who)
        return self._owners[who]

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
        if table is program and key.build_id is not None:
            table = self._twin(key.build_id, program)
        self._tables[key] = table
        self._uses[id(table)] += 1
        if self._uses[id(table)] == 1:
            self.nbytes += table.nbytes
        while self.nbytes > self.max_bytes and len(self._tables) > 1:
            self._drop_oldest()
        return table

    def _twin(self, build_id: bytes, table: SymbolTable) -> SymbolTable:
        """A table that is held already, if all of it is the same: an image runs in many containers, in a file each."""
        held = self._alike.get(build_id)
        if held is not None and held.same_as(table):
            return held
        self._alike[build_id] = table
        return table

    def _drop_oldest(self) -> None:
        key, table = self._tables.popitem(last=False)
        self.evicted += 1
        self._uses[id(table)] -= 1
        if not self._uses[id(table)]:
            del self._uses[id(table)]
            self.nbytes -= table.nbytes
            if key.build_id is not None and self._alike.get(key.build_id) is table:
                del self._alike[key.build_id]
        if key.build_id is not None and self._shared.get(key.build_id) == key:
            del self._shared[key.build_id]

    def _fail(self, key: ElfKey, why: str) -> ElfKey:
        if self._failed.get(key) != why:
            self.failures[why] += 1
        _remember(self._failed, key, why, self._max_failures)
        return key


def _remember(known: OrderedDict[K, V], key: K, value: V, limit: int) -> None:
    known[key] = value
    if len(known) > limit:
        known.popitem(last=False)
