"""A directory that holds a whole system: / of this machine, or the unpacked image of another.

Paths are absolute inside it ("/etc/systemd/system"). Links are followed as that system would follow them and
never lead out of the directory. Files are opened in two steps, so that a pipe or a device in an image is
looked at and not opened. Reads are bounded: an image may hold a file of any size under any name.

Absence is data: what is not there reads as None. What is there and cannot be read (a permission, a cycle of
links, a disk that fails) is None too, and remembered in `unread` with the reason.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from zombiescope.base.in_root import place_in_root

READ_MAX_BYTES = 1 << 20
"""systemd itself refuses a line that is longer."""
NAMES_MAX = 100_000

_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """One name in a directory."""

    name: str
    is_link: bool
    is_directory: bool
    """Of the entry itself: a link to a directory is none."""


class Root:
    """OSError when it cannot be opened as a directory."""

    def __init__(self, path: str | Path = "/") -> None:
        self.path = os.fspath(path)
        self.unread: dict[str, str] = {}
        # Opened before anything is resolved: /proc/PID/root is a link that says "/" and means another root.
        self._fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._prefix = os.readlink(f"/proc/self/fd/{self._fd}").rstrip("/")  # noqa: PTH115 - compared as text

    @property
    def is_this_machine(self) -> bool:
        return os.path.samestat(os.fstat(self._fd), os.stat("/"))  # noqa: PTH116 - one call

    def __enter__(self) -> Root:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._fd)

    def read(self, path: str, limit_bytes: int = READ_MAX_BYTES) -> bytes | None:
        """The content of a regular file, cut at the limit; None where there is none."""
        place = self._place(path)
        if place is None:
            return None
        try:
            return self._content(place, path, limit_bytes)
        except OSError as fault:
            self._remember(path, fault)
            return None
        finally:
            os.close(place)

    def _content(self, place: int, path: str, limit_bytes: int) -> bytes | None:
        status = os.fstat(place)
        if not stat.S_ISREG(status.st_mode):
            if not stat.S_ISDIR(status.st_mode) and not _is_null(status):
                self.unread[path] = "not a regular file"
            return None
        if status.st_size > limit_bytes:
            self.unread[path] = f"longer than {limit_bytes} bytes: only its beginning was read"
        fd = os.open(f"/proc/self/fd/{place}", _READ)
        try:
            parts = [os.read(fd, limit_bytes)]
            while parts[-1] and sum(map(len, parts)) < limit_bytes:  # a file of procfs is handed out in pieces
                parts.append(os.read(fd, limit_bytes))
            return b"".join(parts)[:limit_bytes]
        finally:
            os.close(fd)

    def text(self, path: str) -> str | None:
        """A one-value file, stripped."""
        data = self.read(path)
        return None if data is None else data.decode("utf-8", "replace").strip()

    def entries(self, path: str) -> list[DirectoryEntry]:
        """What is in a directory, by name; nothing where there is none."""
        place = self._place(path)
        if place is None:
            return []
        try:
            fd = os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as fault:
            self._remember(path, fault)
            return []
        finally:
            os.close(place)
        try:
            with os.scandir(fd) as listing:
                found = [
                    DirectoryEntry(entry.name, entry.is_symlink(), entry.is_dir(follow_symlinks=False))
                    for entry, _ in zip(listing, range(NAMES_MAX), strict=False)
                ]
        finally:
            os.close(fd)
        if len(found) == NAMES_MAX:
            self.unread[path] = f"more than {NAMES_MAX} names: the rest was not read"
        return sorted(found, key=lambda entry: entry.name)

    def names(self, path: str) -> list[str]:
        return [entry.name for entry in self.entries(path)]

    def link(self, path: str) -> str | None:
        """Where a link points, as it is written; None for what is no link. Its directory is resolved first."""
        directory, _, name = path.rpartition("/")
        place = self._place(directory or "/")
        if place is None:
            return None
        try:
            return os.readlink(name, dir_fd=place)
        except OSError as fault:
            if fault.errno != errno.EINVAL:
                self._remember(path, fault)
            return None
        finally:
            os.close(place)

    def resolve(self, path: str) -> str | None:
        """The path with every link followed; None where it leads nowhere."""
        place = self._place(path)
        if place is None:
            return None
        try:
            found = os.readlink(f"/proc/self/fd/{place}")  # noqa: PTH115 - compared as text
        finally:
            os.close(place)
        return found.removeprefix(self._prefix) or "/"

    def status(self, path: str) -> os.stat_result | None:
        """Of what the path names in the end."""
        place = self._place(path)
        if place is None:
            return None
        try:
            return os.fstat(place)
        finally:
            os.close(place)

    def is_file(self, path: str) -> bool:
        status = self.status(path)
        return status is not None and stat.S_ISREG(status.st_mode)

    def is_directory(self, path: str) -> bool:
        status = self.status(path)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def is_executable(self, path: str) -> bool:
        status = self.status(path)
        return status is not None and stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o111)

    def is_nothing(self, path: str) -> bool:
        """Whether it is /dev/null or an empty file, which is how a unit or a drop-in is masked."""
        status = self.status(path)
        return status is not None and (_is_null(status) or (stat.S_ISREG(status.st_mode) and status.st_size == 0))

    def _place(self, path: str) -> int | None:
        try:
            return place_in_root(os.fsencode(path), self._fd)
        except OSError as fault:
            self._remember(path, fault)
        except ValueError:  # a NUL byte, which no file system can hold
            self.unread[path] = "not a file name"
        return None

    def _remember(self, path: str, fault: OSError) -> None:
        if fault.errno not in _ABSENT:
            self.unread[path] = os.strerror(fault.errno) if fault.errno else str(fault)


def _is_null(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == os.makedev(1, 3)
