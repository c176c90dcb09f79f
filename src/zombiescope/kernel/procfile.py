"""Files of /proc, /sys and cgroupfs that are read again and again through one descriptor.

Opening a procfs file costs more than reading it, so a tick keeps its files open and reads them with
pread from offset 0. A seq_file hands out at most a buffer (a page, at first) a call: only a read of
zero bytes is the end, never a short one.

What a kept descriptor means: a file below /proc/net stays in the network namespace in which it was
opened, and a file of /proc/PID stays with that task. When the task ends the descriptor answers ESRCH
for ever; it is not opened again, because the number may by then belong to another process.

A file that cannot be read is data: read() gives None and `why` keeps the kernel's reason.
"""

import errno
import os

_MADE_ANEW = frozenset({errno.ENODEV, errno.ESTALE, errno.EBADF})
"""The object behind the descriptor is gone (a cgroup, a network device), but its path may name a new one."""

_PAGE_BYTES = 4096
_U64_DIGITS = 20


def at(root: str, path: str) -> str:
    """The path of a kernel file below root, which is "/" but for fixture trees and mounted images."""
    return f"{root.rstrip('/')}/{path}"


def number(field: bytes) -> int | None:
    """A decimal counter as the kernel prints it; None for anything else."""
    return int(field) if field.isdigit() and len(field) <= _U64_DIGITS else None


def drain(fd: int, chunk_bytes: int = _PAGE_BYTES) -> bytes:
    """Everything from offset 0 to the end of an open kernel file."""
    first = os.pread(fd, chunk_bytes, 0)
    parts = [first]
    offset = len(first)
    while parts[-1]:
        parts.append(os.pread(fd, chunk_bytes, offset))
        offset += len(parts[-1])
    return first if len(parts) < 3 else b"".join(parts)


def read_file(path: str) -> bytes | None:
    """The content of a kernel file that is read once; None where it is absent or denied."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return drain(fd)
    except OSError:
        return None
    finally:
        os.close(fd)


def read_text(path: str) -> str | None:
    """A one-value file (sysfs, sysctl) as stripped text; None where it is absent or denied."""
    data = read_file(path)
    return None if data is None else data.decode("utf-8", "replace").strip()


def read_int(path: str) -> int | None:
    """A one-number file (sysfs, sysctl); None where it is absent, denied or no number."""
    data = read_file(path)
    try:
        return None if data is None else int(data)
    except ValueError:
        return None


def names_in(directory: str) -> list[str] | None:
    """The sorted names in a directory; None where it is absent or denied."""
    try:
        return sorted(os.listdir(directory))  # noqa: PTH208 - a Path for every name would cost more than the listing
    except OSError:
        return None


def read_link(path: str) -> str | None:
    """Where a symbolic link points; None where it is absent or denied."""
    try:
        return os.readlink(path)  # noqa: PTH115 - links of procfs are no paths ("pid:[4026531836]")
    except OSError:
        return None


class ProcFile:
    """One kernel file, opened at the first read and kept open."""

    __slots__ = ("_chunk_bytes", "_fd", "path", "why")

    def __init__(self, path: str) -> None:
        self.path = path
        self.why: str | None = None
        self._fd = -1
        self._chunk_bytes = _PAGE_BYTES

    def read(self) -> bytes | None:
        """The whole file as it is now, or None, and then `why` says what the kernel answered."""
        try:
            data = self._drain_or_reopen()
        except OSError as error:
            self.why = os.strerror(error.errno) if error.errno else str(error)
            return None
        self.why = None
        if len(data) >= self._chunk_bytes:
            self._chunk_bytes = len(data) + _PAGE_BYTES
        return data

    def _drain_or_reopen(self) -> bytes:
        if self._fd >= 0:
            try:
                return drain(self._fd, self._chunk_bytes)
            except OSError as error:
                if error.errno not in _MADE_ANEW:
                    raise
                self.close()
        self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        return drain(self._fd, self._chunk_bytes)

    def close(self) -> None:
        """Gives the descriptor back; a later read opens the path again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            try:
                os.close(fd)
            except OSError as error:
                if error.errno != errno.EBADF:
                    raise
