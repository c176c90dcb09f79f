"""Which files in memory keep removed cgroups below a parent, who owns them, and who has them open.

A page of a tmpfs, of /dev/shm or of a memfd keeps the cgroup that first touched it. /proc/kpagecgroup tells for each
page the surviving parent of a dead owner, so the files are named exactly, whatever they are called and wherever they
are mounted. Where the kernel does not tell, nothing is named: a guess here deletes somebody's object store.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from zombiescope.fix.tmpfs_files import TmpfsFile, Walk, files_below, tmpfs_places
from zombiescope.kernel import mountinfo, open_files, process
from zombiescope.kernel.open_files import Nameless, OpenFiles
from zombiescope.kernel.page_cgroup import PageOwners
from zombiescope.kernel.procfile import read_file

MOST_NAMELESS = 4_096
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_IN_MEMORY = ("/memfd:", "/SYSV")


@dataclass(frozen=True, slots=True)
class User:
    """A process that has a file open or mapped."""

    pid: int
    comm: str
    started_ticks: int
    cgroup: str | None

    def __str__(self) -> str:
        return f"{self.comm} (pid {self.pid}{f', {self.cgroup}' if self.cgroup else ''})"


@dataclass(frozen=True, slots=True)
class Pin:
    """A file that keeps cgroups; `file` is None for one without a name, which goes when its users end."""

    name: str
    file: TmpfsFile | None
    users: tuple[User, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Pins:
    pins: tuple[Pin, ...]
    why_not: str | None = None
    """Why files cannot be named here at all."""
    left_out: tuple[str, ...] = ()
    """Places that were not looked into."""
    complete: bool = True
    """Every process was asked what it has open."""
    hidden: int = 0
    """Processes that would not say."""

    @property
    def size_bytes(self) -> int:
        return sum(pin.size_bytes for pin in self.pins)


def find_pins(parent_inode: int) -> Pins:
    """Of the cgroup directory with this inode."""
    try:
        owners = PageOwners()
    except OSError as error:
        return Pins((), f"/proc/kpagecgroup does not tell which files keep them: {error.strerror}")
    walk = Walk()
    with owners:
        named = [
            file
            for number, place in tmpfs_places(walk).items()
            for file in files_below(place, number, walk)
            if parent_inode in _owners(owners, file.path, file)
        ]
        used = open_files.scan({(file.device, file.inode): file.path for file in named})
        nameless = [one for one in used.nameless[:MOST_NAMELESS] if parent_inode in _nameless_owners(owners, one)]
    left_out = [*walk.left_out, *(["files beyond the limit"] if walk.is_over else [])]
    pins = (*_named(named, used), *_without_name(nameless))
    return Pins(tuple(pins), None, tuple(left_out), used.complete, used.hidden)


def _owners(owners: PageOwners, path: str, same: TmpfsFile | None) -> set[int]:
    try:
        fd = os.open(path, _OPEN if same is not None else _OPEN & ~os.O_NOFOLLOW)
    except OSError:
        return set()
    try:
        status = os.fstat(fd)
        if same is not None and (status.st_dev, status.st_ino) != (same.device, same.inode):
            return set()
        return owners.owners(fd)
    except OSError:
        return set()
    finally:
        os.close(fd)


def _nameless_owners(owners: PageOwners, one: Nameless) -> set[int]:
    """Opened only where it is known to be memory: a deleted file of a server that hangs would hang us."""
    if not one.name.startswith(_IN_MEMORY) and not _is_on_tmpfs(one):
        return set()
    return _owners(owners, f"/proc/{one.pid}/fd/{one.fd}", None)


def _is_on_tmpfs(one: Nameless) -> bool:
    rows = (read_file(f"/proc/{one.pid}/fdinfo/{one.fd}") or b"").split(b"\n")
    mount_id = next((row.partition(b":")[2].strip() for row in rows if row.startswith(b"mnt_id:")), b"")
    mounts = mountinfo.read(one.pid) or ()
    return any(mount.type == "tmpfs" and str(mount.id).encode() == mount_id for mount in mounts)


def _named(files: Iterable[TmpfsFile], used: OpenFiles) -> list[Pin]:
    who = _people()
    return [
        Pin(file.path, file, tuple(filter(None, map(who, sorted(used.users.get((file.device, file.inode), ()))))),
            file.size_bytes)
        for file in files
    ]  # fmt: skip


def _without_name(nameless: Iterable[Nameless]) -> list[Pin]:
    """One for each name, with everybody who has it."""
    who = _people()
    by_name: dict[str, dict[int, int]] = {}
    for one in nameless:
        by_name.setdefault(one.name, {})[one.pid] = one.fd
    return [
        Pin(name, None, tuple(filter(None, map(who, sorted(pids)))), max(_size(pid, fd) for pid, fd in pids.items()))
        for name, pids in by_name.items()
    ]


def _size(pid: int, fd: int) -> int:
    try:
        return os.stat(f"/proc/{pid}/fd/{fd}").st_blocks * 512  # noqa: PTH116  a link of procfs; known to be memory
    except OSError:
        return 0


def _people() -> Callable[[int], User | None]:
    known: dict[int, User | None] = {}

    def who(pid: int) -> User | None:
        if pid not in known:
            found = process.read(pid, cmdline=False)
            user = None if found is None else User(pid, found.comm, found.start_time_ticks, found.systemd_cgroup)
            known[pid] = user
        return known[pid]

    return who


# --- removing --------------------------------------------------------------------------------------------------------


def unlink(file: TmpfsFile) -> None:
    """If it is still there: one that took its name is somebody else's, and is left. Raises OSError."""
    directory, _, name = file.path.rpartition("/")
    fd = os.open(directory or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if (status.st_dev, status.st_ino) == (file.device, file.inode):
            os.unlink(name, dir_fd=fd)
    finally:
        os.close(fd)
