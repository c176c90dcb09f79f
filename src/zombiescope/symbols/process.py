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

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

from zombiescope._native import ElfError, elf_build_id
from zombiescope.symbols.elf import open_elf, reopen
from zombiescope.symbols.maps import Mapping
from zombiescope.symbols.procmap import ProcessMaps

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
