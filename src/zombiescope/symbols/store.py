"""Tables that are expensive to make, kept on disk: made once, whoever asks and however often.

A key says of what an entry was made: a digest of those bytes, or a file as the system knows it. A build id is neither
(elf.py).

    $ZOMBIESCOPE_CACHE/symbols, else $CACHE_DIRECTORY/symbols (which systemd sets), else for root
    /var/cache/zombiescope/symbols, else $XDG_CACHE_HOME/zombiescope/symbols, else ~/.cache/zombiescope/symbols

An entry is the file KIND-KEY: the content as it is, so that its reader needs no other form of it, followed by a
trailer of 56 bytes: "zsymbol1", the length of the content, a BLAKE2b hash over name and content. It is written aside
and renamed when it is whole. An entry that is damaged, of another version or under another name is removed and made
again. A directory or entry of another user, or one that others may write to, is not used. The store holds at most
`max_bytes`; what was not used for longest goes first.

Worth an entry (measured, docs/design/0008): .gnu_debugdata unpacked, and DWARF as a table of inlined functions. Not
worth one: .symtab and pclntab, which are read faster than such a file could be checked.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

MAX_BYTES = 256 << 20
MAX_ENTRIES = 4096
MAGIC = b"zsymbol1"
DIGEST_BYTES = 40
TRAILER = struct.Struct(f"<8sQ{DIGEST_BYTES}s")
PIECE_BYTES = 1 << 16

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_OLD = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_ASIDE = ".new"


class _Checked(NamedTuple):
    inode: int
    size: int
    mtime_ns: int


def default_directory() -> Path:
    """Where the store of this user is; it need not exist yet."""
    chosen = os.environ.get("ZOMBIESCOPE_CACHE") or os.environ.get("CACHE_DIRECTORY", "").split(":")[0]
    if chosen:
        return Path(chosen) / "symbols"
    if os.geteuid() == 0:
        return Path("/var/cache/zombiescope/symbols")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "zombiescope" / "symbols"


class SymbolStore:
    """Entries by kind and key; nothing raises: a store that cannot be used answers None."""

    def __init__(self, directory: Path | None = None, max_bytes: int = MAX_BYTES) -> None:
        self.directory = default_directory() if directory is None else directory
        self.max_bytes = max_bytes
        self.damaged = 0
        self._checked: dict[str, _Checked] = {}

    def open(self, kind: str, key: bytes) -> int | None:
        """A descriptor of an entry, checked; it starts with the content, which is `content_bytes` long."""
        name = f"{kind}-{key.hex()}"
        directory = self._open_directory()
        if directory is None:
            return None
        try:
            fd = os.open(name, _OLD, dir_fd=directory)
        except OSError:
            return None
        else:
            if self._believed(fd, name):
                return fd
            os.close(fd)
            self.damaged += 1
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=directory)
            return None
        finally:
            os.close(directory)

    def make(self, kind: str, key: bytes, fill: Callable[[int], object]) -> int | None:
        """An entry, made now by `fill`, which writes the content to a descriptor; what it raises is passed on."""
        name = f"{kind}-{key.hex()}"
        directory = self._open_directory(make=True)
        if directory is None:
            return None
        aside = f"{name}.{os.getpid()}{_ASIDE}"
        fd = None
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(aside, dir_fd=directory)
            fd = os.open(aside, _NEW, 0o600, dir_fd=directory)
            fill(fd)
            _seal(fd, name)
            os.rename(aside, name, src_dir_fd=directory, dst_dir_fd=directory)
            self._note(fd, name)
            self._trim(directory, name)
            kept, fd = fd, None
        except BaseException as fault:
            with contextlib.suppress(OSError):
                os.unlink(aside, dir_fd=directory)
            if isinstance(fault, OSError):
                return None
            raise
        else:
            return kept
        finally:
            if fd is not None:
                os.close(fd)
            os.close(directory)

    def _open_directory(self, *, make: bool = False) -> int | None:
        try:
            if make:
                self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return None
        if _ours(os.fstat(fd)):
            return fd
        os.close(fd)
        return None

    def _believed(self, fd: int, name: str) -> bool:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or not _ours(status) or status.st_size < TRAILER.size:
            return False
        seen = _Checked(status.st_ino, status.st_size, status.st_mtime_ns)
        if self._checked.get(name) != seen:
            if not _intact(fd, name, status.st_size):
                return False
            with contextlib.suppress(OSError):
                os.utime(f"/proc/self/fd/{fd}")  # used now: goes last
            self._note(fd, name)
        return True

    def _note(self, fd: int, name: str) -> None:
        status = os.fstat(fd)
        if len(self._checked) >= MAX_ENTRIES:
            self._checked.clear()
        self._checked[name] = _Checked(status.st_ino, status.st_size, status.st_mtime_ns)

    def _trim(self, directory: int, newest: str) -> None:
        entries = []
        with os.scandir(directory) as found:
            for entry in found:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode) and entry.name != newest:
                    entries.append((status.st_mtime_ns, status.st_size, entry.name))
        entries.sort()
        total = sum(size for _, size, _ in entries) + os.stat(newest, dir_fd=directory).st_size
        left = len(entries) + 1
        for _, size, name in entries:
            if total <= self.max_bytes and left <= MAX_ENTRIES:
                break
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=directory)
            total -= size
            left -= 1


def content_bytes(fd: int) -> int:
    """The length of an entry without its trailer."""
    return max(os.fstat(fd).st_size - TRAILER.size, 0)


def _ours(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _digest(fd: int, name: str, size: int) -> bytes:
    import hashlib

    digest = hashlib.blake2b(name.encode() + b"\0", digest_size=DIGEST_BYTES)
    at = 0
    while at < size:
        piece = os.pread(fd, min(PIECE_BYTES, size - at), at)
        if not piece:
            break
        digest.update(piece)
        at += len(piece)
    return digest.digest()


def _seal(fd: int, name: str) -> None:
    size = os.lseek(fd, 0, os.SEEK_END)
    os.write(fd, TRAILER.pack(MAGIC, size, _digest(fd, name, size)))
    os.fsync(fd)


def _intact(fd: int, name: str, file_size: int) -> bool:
    size = file_size - TRAILER.size
    try:
        magic, length, digest = TRAILER.unpack(os.pread(fd, TRAILER.size, size))
        return bool(magic == MAGIC and length == size and digest == _digest(fd, name, size))
    except (OSError, struct.error):
        return False
