"""The dying cgroups below a directory: how many it has itself, and what memory keeps them.

A dying cgroup has no directory, so nothing can be read of it. What its surviving ancestors count includes it: what a
directory has more than the directories below it belongs to the dying.

v2: nr_dying_descendants of cgroup.stat (ec39225cca42, v4.14), a plain counter that flushes nothing.
Memory: memory.stat, with the names that end in the dying: on v1 total_NAME counts everything below and NAME the
directory itself, on v2 NAME counts everything below. Until v5.2 (42a300353577) reading it walked every cgroup below,
which is the very thing that hurts: the caller must not ask such a kernel.

Cost: one small read a directory; both functions stop at a number of directories, and answer None when it is passed.
"""

import os
from dataclasses import dataclass

from zombiescope.kernel.cgroup_leaf import parse_flat
from zombiescope.kernel.procfile import read_file

MAX_DIRECTORIES = 256


@dataclass(frozen=True, slots=True)
class Held:
    """Memory that is charged to dying cgroups: page cache of files on disks, and tmpfs, /dev/shm or memfd."""

    file_bytes: int
    shmem_bytes: int
    living_file_bytes: int
    """Page cache of the directories beside them, which reclaiming from the parent takes too."""


def own_dying(mount: str, most: int = MAX_DIRECTORIES) -> list[tuple[str, int]]:
    """(path, dying cgroups directly below it) on cgroup2, the most first; a part of them if there is too much to read.

    Only directories that have dying ones below them are entered.
    """
    found = []
    pending = [("", _dying(mount))]
    while pending and most > 0:
        path, dying = pending.pop(0)
        below = [(f"{path}/{name}", _dying(f"{mount}{path}/{name}")) for name in _children(mount + path)[:most]]
        most -= len(below)
        if own := dying - sum(count for _, count in below):
            found.append((path or "/", own))
        pending.extend(child for child in below if child[1])
    return sorted(found, key=lambda one: -one[1])


def held(directory: str, most: int = MAX_DIRECTORIES) -> Held | None:
    """What keeps the dying cgroups below a directory; None when it cannot be separated from what the living hold."""
    children = _children(directory)
    if len(children) > most:
        return None
    above = _memory(directory, its_own=False)
    if above is None or (not children and _has_own_tasks(directory)):
        return None
    living = [memory for name in children if (memory := _memory(f"{directory}/{name}")) is not None]
    file_bytes, shmem_bytes = (max(0, above[kind] - sum(each[kind] for each in living)) for kind in (0, 1))
    beside = sum(max(0, file - shmem) for file, shmem in living)
    return Held(max(0, file_bytes - shmem_bytes), shmem_bytes, beside)


def _memory(directory: str, its_own: bool = True) -> tuple[int, int] | None:
    """(file, shmem) of a directory and everything below it. What it has itself is separate on v1 only."""
    stat = parse_flat(read_file(f"{directory}/memory.stat") or b"")
    if "total_cache" not in stat:
        return (stat["file"], stat.get("shmem", 0)) if "file" in stat else None
    itself = (0, 0) if its_own else (stat.get("cache", 0), stat.get("shmem", 0))
    return stat["total_cache"] - itself[0], stat.get("total_shmem", 0) - itself[1]


def _has_own_tasks(directory: str) -> bool:
    """Only cgroup2 mixes their memory with that of the dying."""
    if not os.path.exists(f"{directory}/cgroup.controllers"):  # noqa: PTH110  as everywhere in this room, paths are text
        return False
    return bool((read_file(f"{directory}/cgroup.procs") or b"").strip())


def _dying(directory: str) -> int:
    return parse_flat(read_file(f"{directory}/cgroup.stat") or b"").get("nr_dying_descendants", 0)


def _children(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
