"""Files on every tmpfs that this node has, the containers' too, without asking any other file system.

A container's tmpfs is in its own mount namespace and is reached through /proc/PID/root of a process in it. A tmpfs that
is mounted below a file system which somebody serves (NFS, FUSE) is left out and named: going there would ask that
server. Bounded in namespaces, files and time; links are not followed and no other device is entered.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from zombiescope.kernel import mountinfo
from zombiescope.kernel.open_files import device
from zombiescope.kernel.procfile import names_in, read_link

MOST_NAMESPACES = 256
MOST_PROCESSES = 32_768
MOST_FILES = 200_000
MOST_DEPTH = 64
MOST_SECONDS = 20.0
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class TmpfsFile:
    path: str
    """As it is reached from here."""
    device: int
    inode: int
    uid: int
    size_bytes: int
    """Memory that it takes, holes not counted."""


@dataclass(slots=True)
class Walk:
    """What was looked at, and what was not."""

    end: float = field(default_factory=lambda: time.monotonic() + MOST_SECONDS)
    left_out: list[str] = field(default_factory=list)
    files: int = 0

    @property
    def is_over(self) -> bool:
        return self.files >= MOST_FILES or time.monotonic() > self.end

    @property
    def complete(self) -> bool:
        return not self.left_out and not self.is_over


def tmpfs_places(walk: Walk) -> dict[int, str]:
    """st_dev -> a directory, of every tmpfs once; those of our own namespace by their plain names."""
    found: dict[int, str] = {}
    for prefix, mounts in _namespaces(walk):
        for mount in mounts:
            number = device(mount.device)
            if mount.type != "tmpfs" or number is None or number in found:
                continue
            if _is_below_a_server(mounts, mount.point):
                walk.left_out.append(f"{prefix}{mount.point}")
            else:
                found[number] = prefix + mount.point
    return found


def _namespaces(walk: Walk) -> Iterator[tuple[str, tuple[mountinfo.Mount, ...]]]:
    yield "", mountinfo.read() or ()
    known = {read_link("/proc/self/ns/mnt")}
    pids = [name for name in names_in("/proc") or () if name.isdecimal()]
    for pid in pids[:MOST_PROCESSES]:
        namespace = read_link(f"/proc/{pid}/ns/mnt")
        if namespace is None or namespace in known:
            continue
        if len(known) >= MOST_NAMESPACES:
            walk.left_out.append("containers beyond the first 256")
            return
        known.add(namespace)
        yield f"/proc/{pid}/root", mountinfo.read(pid) or ()


def _is_below_a_server(mounts: tuple[mountinfo.Mount, ...], point: str) -> bool:
    return any(
        mount.family is not None and point.startswith(f"{mount.point.rstrip('/')}/")
        for mount in mounts
    )  # fmt: skip


def files_below(place: str, number: int, walk: Walk) -> Iterator[TmpfsFile]:
    """Regular files that take memory; `number` is the device that is not left."""
    pending = [(place, 0)]
    while pending and not walk.is_over:
        directory, depth = pending.pop()
        for name, status in _entries(directory, number):
            path = f"{directory.rstrip('/')}/{name}"
            if stat.S_ISDIR(status.st_mode) and depth < MOST_DEPTH:
                pending.append((path, depth + 1))
            elif stat.S_ISREG(status.st_mode) and status.st_blocks:
                walk.files += 1
                yield TmpfsFile(path, number, status.st_ino, status.st_uid, status.st_blocks * 512)


def _entries(directory: str, number: int) -> list[tuple[str, os.stat_result]]:
    """Of a directory on this device; a link in its place is not followed, a file that goes meanwhile is left out."""
    try:
        fd = os.open(directory, _DIRECTORY)
    except OSError:
        return []
    try:
        if os.fstat(fd).st_dev != number:
            return []
        with os.scandir(fd) as entries:
            names = [entry.name for entry in entries]
        return [(name, status) for name in names if (status := _status(name, fd)) and status.st_dev == number]
    finally:
        os.close(fd)


def _status(name: str, fd: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return None


def is_there(file: TmpfsFile) -> bool:
    """Whether that very file still has its name."""
    try:
        status = os.stat(file.path, follow_symlinks=False)  # noqa: PTH116  paths are text here
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == (file.device, file.inode)
