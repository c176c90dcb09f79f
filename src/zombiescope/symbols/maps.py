"""/proc/PID/maps: which file, at which offset, the code at an address was loaded from.

Only executable mappings are kept, ordered by address. Fields read: the address range, the permissions (for
x), the offset, the device, the inode and the name. The same objects are made from PERF_RECORD_MMAP2 for
processes that are gone; those may carry a build id instead of device and inode (attr.build_id, kernel 5.12).

Reading costs the kernel about a microsecond a mapping, under the reader's side of the target's mmap lock, so
it is read once per process and again only when an address is in none of them. An empty file is a process
without memory: a kernel thread, or one that has exited and was not waited for. PermissionError:
CAP_SYS_PTRACE or, since about kernel 6.14, CAP_PERFMON is missing.
"""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

MappingKind = Literal["file", "vdso", "anon", "jit", "stack", "memfd"]

MAX_MAPPINGS = 4096
MAX_BYTES = 16 << 20

_EXECUTABLE = re.compile(
    rb"^([0-9a-f]+)-([0-9a-f]+) ..x. ([0-9a-f]+) ([0-9a-f]+):([0-9a-f]+) (\d+) *(.*)$", re.MULTILINE
)
_DELETED = " (deleted)"
# Shared anonymous memory has a file of the kernel's own tmpfs behind it, which nobody can open.
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
        return self.path.rpartition("/")[2] if self.kind in ("file", "memfd") else self.path or "[anon]"


class Mappings:
    """Executable mappings of one process, none overlapping another, ordered by address."""

    __slots__ = ("_mappings", "_starts")

    def __init__(self, mappings: Iterable[Mapping] = ()) -> None:
        """Take mappings in the order they were made: a later one covers what it overlaps."""
        layered: list[Mapping] = []
        for mapping in mappings:
            layered = _laid_over(layered, mapping)[-MAX_MAPPINGS:]
        self._mappings = layered
        self._starts = [mapping.start for mapping in layered]

    @classmethod
    def _ordered(cls, mappings: list[Mapping]) -> Mappings:
        made = cls()
        made._mappings = mappings
        made._starts = [mapping.start for mapping in mappings]
        return made

    def __len__(self) -> int:
        return len(self._mappings)

    def __iter__(self) -> Iterator[Mapping]:
        return iter(self._mappings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mappings) and self._mappings == other._mappings

    __hash__ = None  # type: ignore[assignment]  # compared by content, so it has no lasting hash

    def find(self, ip: int) -> Mapping | None:
        """The mapping that holds this address."""
        at = bisect_right(self._starts, ip) - 1
        if at < 0:
            return None
        mapping = self._mappings[at]
        return mapping if ip < mapping.end else None


def _laid_over(below: list[Mapping], top: Mapping) -> list[Mapping]:
    if top.start >= top.end:
        return below
    if not below or below[-1].end <= top.start:
        return [*below, top]
    kept = [top]
    for old in below:
        if old.start < top.start:
            kept.append(replace(old, end=min(old.end, top.start)))
        if old.end > top.end:
            cut = max(0, top.end - old.start)
            kept.append(replace(old, start=old.start + cut, pgoff=old.pgoff + cut))
    return sorted(kept, key=lambda mapping: mapping.start)


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
    """A mapping as a PERF_RECORD_MMAP2 tells it."""
    path, deleted = _path(filename)
    # Anonymous memory has no offset in a file: the kernel gives its address there.
    return Mapping(
        start, start + length, pgoff, inode, dev, path, deleted, kind_of(path), build_id or None, mapped_at_s
    )


def parse(text: bytes) -> Mappings:
    """The executable mappings in the text of /proc/PID/maps, at most MAX_MAPPINGS of them."""
    found: list[Mapping] = []
    for line in _EXECUTABLE.finditer(text):
        start, end, pgoff, major, minor, inode, name = line.groups()
        path, deleted = _path(name)
        dev = os.makedev(int(major, 16), int(minor, 16))
        found.append(
            Mapping(
                int(start, 16), int(end, 16), int(pgoff, 16), int(inode), dev, path, deleted, kind_of(path)
            )
        )
        if len(found) == MAX_MAPPINGS:
            break
    return Mappings._ordered(found)


def _path(name: bytes) -> tuple[str, bool]:
    # The kernel escapes the newline only; equal paths of many processes are one object.
    path = os.fsdecode(name.replace(b"\\012", b"\n"))
    deleted = path.endswith(_DELETED)
    return sys.intern(path.removesuffix(_DELETED) if deleted else path), deleted


def read(process_fd: int) -> Mappings:
    """Read maps in the open directory /proc/PID; ProcessLookupError when the process has no memory."""
    try:
        fd = os.open("maps", os.O_RDONLY | os.O_CLOEXEC, dir_fd=process_fd)
    except FileNotFoundError:
        raise ProcessLookupError from None
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
