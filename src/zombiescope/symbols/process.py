"""One living process, seen through its directory in /proc: its mappings and the files behind them.

The directory is held open (O_PATH): all reads go through it, so a pid that was given to another process
answers ENOENT instead of that process's data. The link /proc/PID/exe is read before the kept mappings are
used: it changes at exec, and cannot be read after exit. Three ways lead to a mapped file, in this order:

    /proc/PID/root + path   needs CAP_SYS_PTRACE; the path as maps prints it, found inside the process's root
    /proc/PID/exe           needs CAP_SYS_PTRACE; the program itself, also when it was deleted
    /proc/PID/map_files/    needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE (5.9); any file, also deleted ones

A file is accepted when its build id is that of the mapping, or, where that is not known, when device and
inode are. On btrfs and older overlayfs, whose devices have no number of their own (major 0), stat() gives other
numbers than maps does; then the path decides, if everybody may read the file, and that is noted. Between numbered
devices it never decides: whoever has a mount namespace of his own can put any file under that path.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

from zombiescope._native import ElfError, elf_build_id, query_map
from zombiescope.symbols import maps
from zombiescope.symbols.elf import open_elf, reopen
from zombiescope.symbols.maps import Mapping, Mappings

_PLACE = os.O_PATH | os.O_CLOEXEC
_DIRECTORY = _PLACE | os.O_DIRECTORY


@dataclass(slots=True)
class Tally:
    """What could not be read, and what was accepted with less than certainty."""

    denied: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)


class LiveProcess:
    """A living process; ProcessLookupError from any method when it is gone."""

    __slots__ = ("_exe", "_root", "fd", "maps", "pid", "proc")

    def __init__(self, pid: int, proc: str = "/proc") -> None:
        self.pid = pid
        self.proc = proc
        self._root: tuple[object, ...] | None = None
        try:
            self.fd = os.open(f"{proc}/{pid}", _DIRECTORY)
        except FileNotFoundError:
            raise ProcessLookupError from None
        self._exe: str | None = None
        self.maps = ProcessMaps(self.fd)
        if not self.still_there():
            self.close()
            raise ProcessLookupError

    @property
    def root(self) -> tuple[object, ...]:
        """Where its paths lead: its mount namespace and its root in it; itself where that may not be known."""
        if self._root is None:
            self._root = _root(self.fd) or (self.pid, self.fd)
        return self._root

    @property
    def ours(self) -> bool:
        """Whether its root is ours, or that of the machine's first process.

        In a mount namespace of its own, as services of systemd have, other files may be in their places; but nobody
        else can make them root's.
        """
        machine = (_root_at(f"{self.proc}/self"), _root_at(f"{self.proc}/1"))
        return self.root[1:] in [root[1:] for root in machine if root is not None]

    def close(self) -> None:
        """Let go of the directory."""
        os.close(self.fd)

    def still_there(self) -> bool:
        """Whether the process lives; notices that it has executed another program."""
        try:
            exe = os.readlink("exe", dir_fd=self.fd)
        except PermissionError:
            # The link is closed to us while maps may be open; another file of the directory tells life from
            # death.
            return os.access("stat", os.F_OK, dir_fd=self.fd)
        except OSError:
            return False
        if exe != self._exe:
            self._exe = exe
            self._root = None
            self.maps.forget()
        return True

    def open_mapped(self, mapping: Mapping, tally: Tally) -> int | None:
        """A descriptor of the file behind a mapping, or None, with the reason counted."""
        for source, way in self._ways(mapping):
            try:
                fd = way(mapping, tally)
            except PermissionError:
                tally.denied[source] += 1
            except ElfError as fault:
                tally.failures[str(fault)] += 1
            except FileNotFoundError:
                continue
            except OSError as fault:
                tally.failures[fault.strerror or "unknown"] += 1
            else:
                if fd is not None:
                    return fd
        if self.still_there():
            tally.failures["deleted" if mapping.deleted else "not found"] += 1
        return None

    def _ways(self, mapping: Mapping) -> Iterator[tuple[str, Callable[[Mapping, Tally], int | None]]]:
        if mapping.kind == "file" and not mapping.deleted:
            yield "/proc/PID/root", self._open_by_path
            if self._exe is None:
                yield "file", self._open_as_ours
        if self._exe is not None and self._exe.removesuffix(" (deleted)") == mapping.path:
            yield "/proc/PID/exe", self._open_exe
        yield "/proc/PID/map_files", self._open_map_file

    def _open_by_path(self, mapping: Mapping, tally: Tally) -> int | None:
        root_fd = os.open("root", _DIRECTORY, dir_fd=self.fd)
        try:
            path = mapping.path
            # maps prints paths from the root of the mount namespace; a process in a chroot finds them further
            # down.
            own = os.readlink("root", dir_fd=self.fd)
            if own != "/" and path.startswith(own + "/"):
                path = path[len(own) :]
            fd = open_elf(path, root_fd)
        finally:
            os.close(root_fd)
        return _accepted(fd, mapping, tally)

    def _open_as_ours(self, mapping: Mapping, tally: Tally) -> int | None:
        # Where the process's root is closed to us, a file of ours under the same path may be the very same
        # file.
        return open_ours(mapping, tally)

    def _open_exe(self, mapping: Mapping, tally: Tally) -> int | None:
        return _accepted(self._open_link("exe"), mapping, tally)

    def _open_map_file(self, mapping: Mapping, tally: Tally) -> int | None:
        fd = self._open_link(f"map_files/{mapping.start:x}-{mapping.end:x}")
        return _accepted(fd, mapping, tally)

    def _open_link(self, name: str) -> int:
        place = os.open(name, _PLACE, dir_fd=self.fd)
        try:
            return reopen(place)
        finally:
            os.close(place)


def open_ours(mapping: Mapping, tally: Tally, root: str = "/") -> int | None:
    """The file of this path in a root of ours, if device and inode are those of the mapping."""
    root_fd = os.open(root, _DIRECTORY)
    try:
        fd = open_elf(mapping.path, root_fd)
    finally:
        os.close(root_fd)
    return _accepted(fd, mapping, tally, certain=True)


def _accepted(fd: int, mapping: Mapping, tally: Tally, *, certain: bool = False) -> int | None:
    try:
        refusal = _refusal(fd, mapping, tally, certain)
    except ElfError as fault:
        refusal = str(fault)
    except BaseException:
        os.close(fd)
        raise
    if refusal is None:
        return fd
    os.close(fd)
    tally.failures[refusal] += 1
    return None


def _refusal(fd: int, mapping: Mapping, tally: Tally, certain: bool) -> str | None:
    if mapping.build_id is not None:
        return None if elf_build_id(fd) == mapping.build_id else "another build"
    if mapping.inode == 0:
        return None
    status = os.fstat(fd)
    same_inode, same_device = status.st_ino == mapping.inode, status.st_dev == mapping.dev
    if same_inode and same_device:
        return None
    if same_device or certain or (os.major(status.st_dev) and os.major(mapping.dev)):
        return "replaced"
    if not status.st_mode & stat.S_IROTH:
        return "not everybody's to read, and perhaps another file"
    tally.notes["accepted by path and inode" if same_inode else "accepted by path"] += 1
    return None


def _root(process_fd: int) -> tuple[object, ...] | None:
    try:
        namespace = os.stat("ns/mnt", dir_fd=process_fd)
        root = os.stat("root", dir_fd=process_fd)
    except OSError:
        return None
    return namespace.st_ino, root.st_dev, root.st_ino


@cache
def _root_at(place: str) -> tuple[object, ...] | None:
    try:
        fd = os.open(place, _DIRECTORY)
    except OSError:
        return None
    try:
        return _root(fd)
    finally:
        os.close(fd)


# --- PROCMAP_QUERY ----------------------------------------------------------------------------------------------------
# The executable mappings of a living process, asked for by address.
#
# Since kernel 6.11 (commit ed5d583a88a9) the ioctl PROCMAP_QUERY on /proc/PID/maps answers for one address in a
# few microseconds, whatever the process has mapped. Before that the whole file is read, half a millisecond for
# a process with a few hundred mappings, and read again only when an address is in none of them. Frame-pointer
# chains end in addresses that are nowhere, so each time that found nothing doubles the wait.
#
# What was found is kept for a minute, or until somebody says that it changed.

KEPT_FOR_S = 60.0
CHANGED_AFTER_S = 0.1
FIRST_WAIT_S = 1.0
LAST_WAIT_S = 60.0


class ProcessMaps:
    """Mappings of one process, whose open directory /proc/PID stays its owner's."""

    __slots__ = ("_changed", "_kept", "_process_fd", "_read_at_s", "_since_s", "_wait_s")

    queries: ClassVar[bool] = True  # until the kernel says that it has no PROCMAP_QUERY

    def __init__(self, process_fd: int) -> None:
        self._process_fd = process_fd
        self._wait_s = FIRST_WAIT_S
        self.forget()

    def __len__(self) -> int:
        return len(self._kept)

    def forget(self) -> None:
        """The process has executed another program."""
        self._kept = Mappings()
        self._changed = False
        self._since_s = time.monotonic()
        self._read_at_s: float | None = None

    def changed(self) -> None:
        """The process has mapped something; what is kept is dropped, but not ten times in a second."""
        self._changed = True

    def locate(self, addresses: Sequence[int]) -> list[Mapping | None]:
        """The mapping of each address; ProcessLookupError when the process has none at all, being gone."""
        age_s = time.monotonic() - self._since_s
        if age_s > KEPT_FOR_S or (self._changed and age_s > CHANGED_AFTER_S):
            self.forget()
        found = [self._kept.find(address) for address in addresses]
        if None not in found:
            return found
        if ProcessMaps.queries:
            try:
                return self._query(addresses, found)
            except OSError as fault:
                if fault.errno != errno.ENOTTY:
                    raise
                ProcessMaps.queries = False
        return self._read(addresses, found)

    def _query(self, addresses: Sequence[int], found: list[Mapping | None]) -> list[Mapping | None]:
        fd = maps.open_maps(self._process_fd)
        try:
            for at, address in enumerate(addresses):
                if found[at] is None:
                    # One before it in the chain may have brought its mapping.
                    found[at] = self._kept.find(address) or self._query_one(fd, address)
        finally:
            os.close(fd)
        return found

    def _query_one(self, fd: int, address: int) -> Mapping | None:
        answer = query_map(fd, address)
        if answer is None:
            return None
        start, end, pgoff, inode, major, minor, name = answer
        mapping = maps.recorded(start, end - start, pgoff, name, dev=os.makedev(major, minor), inode=inode)
        self._kept.add(mapping)
        return mapping

    def _read(self, addresses: Sequence[int], found: list[Mapping | None]) -> list[Mapping | None]:
        now_s = time.monotonic()
        if self._read_at_s is not None and now_s - self._read_at_s < self._wait_s:
            return found
        fresh = maps.read(self._process_fd)
        in_vain = fresh == self._kept
        self._wait_s = min(2 * self._wait_s, LAST_WAIT_S) if in_vain else FIRST_WAIT_S
        self._kept, self._read_at_s = fresh, now_s
        return [fresh.find(address) for address in addresses]
