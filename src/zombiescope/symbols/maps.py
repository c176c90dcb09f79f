"""/proc/PID/maps: which file, at which offset, the code at an address was loaded from.

Only executable mappings are kept, ordered by address. Fields read: the address range, the permissions (for
x), the offset, the device, the inode and the name. The same objects are made from PERF_RECORD_MMAP2 for
processes that are gone; those may carry a build id instead of device and inode (attr.build_id, kernel 5.12).

Reading costs 1.4 microseconds a line in the kernel, all lines included, under the target's mmap lock (see
procmap for how that is avoided). An empty file is a process without memory: a kernel thread, or one that has
exited and was not waited for. PermissionError: CAP_SYS_PTRACE or, since about kernel 6.14, CAP_PERFMON is
missing.
"""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

MappingKind = Literal["file", "vdso", "anon", "jit", "stack", "memfd"]

MAX_MAPPINGS = 4096
MAX_BYTES = 16 << 20

_LINE = re.compile(
    rb"([0-9a-f]{1,16})-([0-9a-f]{1,16}) \S{4} ([0-9a-f]{1,16}) ([0-9a-f]{1,3}):([0-9a-f]{1,5}) (\d{1,20})(?: +(.*))?",
    re.DOTALL,
)
_DELETED = " (deleted)"
PERF_ANON = "//anon"
"""What the kernel's records call memory without a file; /proc/PID/maps leaves the name empty."""
# Shared anonymous memory is backed by a file of the kernel's own tmpfs, which nobody can open.
_ANONYMOUS_FILES = ("/dev/zero", "/SYSV", "/anon_hugepage", "//anon")


@dataclass(frozen=True, slots=True)
class Mapping:
    """One executable mapping. `pgoff` is the offset in the file, in bytes, of the code at `start`."""

    start: int
    end: int
    pgoff: int
    inode: int
    dev: int
    path: str
    deleted: bool
    kind: MappingKind
    build_id: bytes | None = None
    mapped_at_s: float | None = None  # wall-clock time; known for mappings from records only

    @property
    def module(self) -> str:
        """The name a frame shows: the file's own name, or the kernel's name in brackets."""
        if self.kind in ("file", "memfd"):
            return self.path.rpartition("/")[2]
        return "[anon]" if self.path in ("", PERF_ANON) else self.path


class Mappings:
    """Executable mappings of one process, none overlapping another, ordered by address."""

    __slots__ = ("_mappings", "_starts")

    def __init__(self, mappings: Iterable[Mapping] = ()) -> None:
        """Take mappings in the order they were made: a later one covers what it overlaps."""
        self._mappings: list[Mapping] = []
        self._starts: list[int] = []
        for mapping in mappings:
            self.add(mapping)

    def __len__(self) -> int:
        return len(self._mappings)

    def __iter__(self) -> Iterator[Mapping]:
        return iter(self._mappings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mappings) and self._mappings == other._mappings

    __hash__ = None  # type: ignore[assignment]  # compared by content, which changes

    def find(self, ip: int) -> Mapping | None:
        """The mapping that holds this address."""
        at = bisect_right(self._starts, ip) - 1
        if at < 0:
            return None
        mapping = self._mappings[at]
        return mapping if ip < mapping.end else None

    def add(self, mapping: Mapping) -> None:
        """Lay a mapping over the others; with MAX_MAPPINGS held, more of them are not taken."""
        if mapping.start >= mapping.end or len(self._mappings) >= MAX_MAPPINGS:
            return
        first = bisect_right(self._starts, mapping.start)
        if first and self._mappings[first - 1].end > mapping.start:
            first -= 1
        last = bisect_left(self._starts, mapping.end)
        pieces = [piece for old in self._mappings[first:last] for piece in _around(old, mapping)]
        pieces = sorted([*pieces, mapping], key=lambda piece: piece.start)
        self._mappings[first:last] = pieces
        self._starts[first:last] = [piece.start for piece in pieces]


def _around(old: Mapping, top: Mapping) -> Iterator[Mapping]:
    if old.start < top.start:
        yield replace(old, end=top.start)
    if old.end > top.end:
        cut = top.end - old.start
        yield replace(old, start=top.end, pgoff=old.pgoff + cut)


def kind_of(path: str) -> MappingKind:
    """What the kernel's name of a mapping says about it; both maps and MMAP2 records use these names."""
    if path.startswith("/memfd:"):
        return "memfd"
    if path.startswith("/"):
        return "anon" if path.startswith(_ANONYMOUS_FILES) else "file"
    if path.startswith(("[anon:", "[anon_shmem:")):
        return "jit"
    if path.startswith("[stack"):
        return "stack"
    return "vdso" if path in ("[vdso]", "[vsyscall]", "[uprobes]", "[vectors]", "[sigpage]") else "anon"


def recorded(
    start: int,
    length: int,
    pgoff: int,
    filename: bytes,
    *,
    dev: int = 0,
    inode: int = 0,
    build_id: bytes | None = None,
    mapped_at_s: float | None = None,
) -> Mapping:
    """A mapping as a PERF_RECORD_MMAP2 or PROCMAP_QUERY describes it."""
    path, deleted = _path(filename)
    end = start + length
    return Mapping(start, end, pgoff, inode, dev, path, deleted, kind_of(path), build_id or None, mapped_at_s)


def parse(text: bytes) -> Mappings:
    """The executable mappings in the text of /proc/PID/maps, at most MAX_MAPPINGS of them."""
    mappings = Mappings()
    for line in text.split(b"\n"):
        # A split of every line would cost more than all the rest: most mappings are not executable.
        if line[line.find(b" ") + 3 : line.find(b" ") + 4] == b"x":
            mapping = _parse_line(line)
            if mapping is not None:
                mappings.add(mapping)
    return mappings


def _parse_line(line: bytes) -> Mapping | None:
    """None for a line that the kernel does not print."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    start, end, pgoff, major, minor = (int(number, 16) for number in found.group(1, 2, 3, 4, 5))
    # The kernel escapes the newline, and nothing else.
    name = (found[7] or b"").replace(b"\\012", b"\n")
    return recorded(start, end - start, pgoff, name, dev=os.makedev(major, minor), inode=int(found[6]))


def _path(name: bytes) -> tuple[str, bool]:
    path = os.fsdecode(name)
    deleted = path.endswith(_DELETED)
    # Interned: equal paths of many processes are one object.
    return sys.intern(path.removesuffix(_DELETED)), deleted


def open_maps(process_fd: int) -> int:
    """Open maps in the open directory /proc/PID; ProcessLookupError when the process is gone."""
    try:
        return os.open("maps", os.O_RDONLY | os.O_CLOEXEC, dir_fd=process_fd)
    except FileNotFoundError:
        raise ProcessLookupError from None


def read(process_fd: int) -> Mappings:
    """Read all of maps; ProcessLookupError when the process has no memory."""
    fd = open_maps(process_fd)
    try:
        text = _read_to_end(fd)
    finally:
        os.close(fd)
    if not text:
        raise ProcessLookupError
    return parse(text)


def _read_to_end(fd: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while size < MAX_BYTES and (part := os.read(fd, 1 << 16)):
        parts.append(part)
        size += len(part)
    return b"".join(parts)
