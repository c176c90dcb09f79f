"""Releases removed memory cgroups that page cache keeps, by reclaiming from their surviving parent, in pieces.

v1: memory.force_empty. One write loops in the kernel until the cgroup is empty or five rounds freed nothing, but a
signal ends it (EINTR), so a piece is a second of it. The hierarchy's root has none.
v2: memory.reclaim (v5.19, 94968384dde1). A piece is a number of bytes; EAGAIN says that less was found. With
swappiness=0 (v6.9, 68cd9050d871) the memory of living processes is left alone; older kernels may swap some of it.

Neither aims at the dead: page cache of the living below the same parent goes too, and they read it again. Both end when
a piece releases nothing more, or at a time limit: without progress this is a core's work for nothing.

Tmpfs is never reclaimed for this. Without swap its pages cannot go (7 s of a core for nothing with 20,000 of them),
and with swap the swap entry keeps the cgroup as the page did. `refusal` says so before anything is written.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass

from zombiescope.kernel.cgroup import Hierarchy, is_root
from zombiescope.kernel.cgroup_census import parse_v1, parse_v2
from zombiescope.kernel.cgroup_dying import Held, held
from zombiescope.kernel.procfile import read_file
from zombiescope.kernel.release import STAT_WALKS_BEFORE, kernel_version

LIMIT_S = 30.0
SLICE_S = 1.0
PIECE_BYTES = 64 << 20
IDLE_BYTES = 1 << 30
"""Reclaimed without one cgroup released: the rest is kept by something else."""
IDLE_PIECES = 2
LIVING_BYTES = 1 << 30
"""Page cache of the living that reclaiming may take: a gigabyte is read again in seconds."""
_LEAVES_ANONYMOUS_FROM = (6, 9)
MOST_CHILDREN = 2_000
"""Directories below a parent whose statistics are read: a node with 500 pods has that many."""
MOSTLY = 0.9
"""Share of the bytes held by the dead that must be page cache: reclaim walks the others in vain, again and again."""


@dataclass(frozen=True, slots=True)
class Parent:
    """A directory that is still there, below which cgroups were removed."""

    path: str
    """From the root of the hierarchy."""
    directory: str
    file: str | None
    """What is written to reclaim; None where this kernel has no such file."""
    version: int
    held: Held | None
    """None: not known, because it cannot be separated or asking would walk them all (before v5.2)."""

    def count(self) -> int | None:
        """Dying cgroups below it (v2), or all memory cgroups of the node (v1): what falls is what matters."""
        if self.version == 1:
            node = parse_v1(read_file("/proc/cgroups") or b"")
            return None if node is None else node.total
        below = parse_v2(read_file(f"{self.directory}/cgroup.stat") or b"")
        return None if below is None else below.dying


def word(version: int) -> str:
    """What is written to reclaim a piece. From v6.9 on the memory of living processes can be left alone."""
    if version == 1:
        return "0"
    return f"{PIECE_BYTES} swappiness=0" if leaves_anonymous() else f"{PIECE_BYTES}"


def leaves_anonymous() -> bool:
    version = kernel_version(os.uname().release)
    return version is not None and version >= _LEAVES_ANONYMOUS_FROM


def pieces(parent: Parent) -> int:
    """How often the word of cgroup2 is written at most: as many bytes as the dead hold, and LIVING_BYTES more."""
    dead = 0 if parent.held is None else parent.held.file_bytes
    return -(-(dead + LIVING_BYTES) // PIECE_BYTES)


def surviving_parent(hierarchy: Hierarchy, path: str, ending: Collection[str] = ()) -> Parent | None:
    """Of the cgroups of a path of the ledger ("/jobs/job-*"): the deepest directory above them that exists. `ending`:
    names of directories that an earlier step of the plan takes away (the unit's own), so they do not survive."""
    names = path.strip("/").split("/")[:-1]
    fixed = next((at for at, name in enumerate(names) if "*" in name or name in ending), len(names))
    mount = hierarchy.mount
    if mount is None or ".." in names:
        return None
    for depth in range(fixed, -1, -1):
        place = "/".join([mount, *names[:depth]])
        if os.path.isdir(place):  # noqa: PTH112  cgroup paths are text
            return parent_at(hierarchy, "/" + "/".join(names[:depth]), place)
    return None


def parent_at(hierarchy: Hierarchy, path: str, directory: str) -> Parent:
    name = "memory.force_empty" if hierarchy.version == 1 else "memory.reclaim"
    file = f"{directory}/{name}"
    usable = os.access(file, os.F_OK) and not (hierarchy.version == 1 and is_root(directory))
    return Parent(path, directory, file if usable else None, hierarchy.version, _held(directory))


def _held(directory: str) -> Held | None:
    version = kernel_version(os.uname().release)
    if version is None or version < STAT_WALKS_BEFORE or is_root(directory):
        return None
    return held(directory, MOST_CHILDREN)


def refusal(parent: Parent) -> str | None:
    """Why reclaiming from it would be in vain, or hit everybody; None where it may help."""
    if parent.path == "/":
        return (
            "they were directly below the root of the hierarchy: reclaiming there takes the cache of the whole node, "
            "as a blind drop_caches would, so nothing is done; a reboot releases them"
        )
    if parent.file is None:
        needs = "a kernel from 5.19 on" if parent.version == 2 else "a parent below the root of the hierarchy"
        return f"{parent.directory} has no file to reclaim through; that needs {needs}"
    found = parent.held
    both = 0 if found is None else found.file_bytes + found.shmem_bytes
    if found is None:
        return None
    if found.shmem_bytes > (1 - MOSTLY) * both:
        return (
            f"tmpfs keeps them: {found.shmem_bytes:,} of {both:,} bytes that the removed cgroups below {parent.path} "
            "hold; reclaiming would burn a core without success, so remove the files first"
        )
    return None


@dataclass(frozen=True, slots=True)
class Reclaimed:
    before: int
    after: int
    seconds: float
    ended: str
    """Why it stopped."""

    @property
    def freed(self) -> int:
        return max(0, self.before - self.after)


Piece = Callable[[], tuple[bool, int]]
"""Reclaims one piece: (the kernel found nothing more, bytes it was asked for)."""


def in_pieces(
    piece: Piece,
    count: Callable[[], int | None],
    clock: Callable[[], float],
    limit_s: float,
    most_pieces: int | None = None,
) -> Reclaimed:
    """Until nothing is left, nothing more is released, the time is over, or so many pieces were taken."""
    start, first = clock(), count()
    if first is None:
        raise OSError(errno.ENODATA, "memory cgroups cannot be counted, so there is no way to know when to stop")
    last, idle, idle_bytes, taken = first, 0, 0, 0
    ended = "the time was over"
    while clock() - start < limit_s:
        if most_pieces is not None and taken >= most_pieces:
            ended = "as many bytes were reclaimed as the dead held, and as may be taken from the living"
            break
        exhausted, asked = piece()
        taken += 1
        now = count()
        now = last if now is None else now
        progress = now < last
        idle, idle_bytes = (0, 0) if progress else (idle + exhausted, idle_bytes + asked)
        last = now
        if idle >= IDLE_PIECES or idle_bytes >= IDLE_BYTES:
            ended = "nothing more is released"
            break
    return Reclaimed(first, last, clock() - start, ended)
