"""Where dying memory cgroups are and what keeps them, once a minute while they are many.

The ledger knows who made and removed those that it saw. Older ones are found by what their surviving parents count
(cgroup2 only), and what keeps them by the memory that is charged below a parent and to none of its directories.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from zombiescope.kernel import cgroup_dying
from zombiescope.kernel.cgroup import Hierarchy, directory, is_root
from zombiescope.kernel.release import STAT_WALKS_BEFORE, kernel_version

EVERY_US = 60_000_000
MANY = 1_000
PARENTS = 3
SOURCE = "dying"


class Level(NamedTuple):
    """A gauge of the source "dying": `own` cgroups, `file` or `shmem` bytes of the dying, `living_file` bytes of page
    cache of the others, below the directory `parent`."""

    name: str
    parent: str
    value: int


class Dying:
    def __init__(self, hierarchy: Hierarchy | None, release: str | None) -> None:
        self._hierarchy = hierarchy
        version = kernel_version(release)
        self._stat_is_cheap = version is not None and version >= STAT_WALKS_BEFORE
        self._next_us = 0

    def look(self, wall_us: int, dying: int | None, leaking: Iterable[str]) -> list[Level]:
        """`leaking`: normalised paths of the ledger, those with most dying cgroups first."""
        if dying is None or dying < MANY or wall_us < self._next_us or self._hierarchy is None:
            return []
        self._next_us = wall_us + EVERY_US
        return list(self._levels(self._hierarchy, leaking))

    def _levels(self, hierarchy: Hierarchy, leaking: Iterable[str]) -> Iterator[Level]:
        parents = [path.rpartition("/")[0] or "/" for path in leaking]
        if hierarchy.version == 2 and hierarchy.mount is not None:
            owners = cgroup_dying.own_dying(hierarchy.mount)[:PARENTS]
            yield from (Level("own", path, count) for path, count in owners)
            parents += [path for path, _ in owners]
        if self._stat_is_cheap:
            for path in list(dict.fromkeys(parents))[:PARENTS]:
                yield from self._held(hierarchy, path)

    def _held(self, hierarchy: Hierarchy, path: str) -> Iterator[Level]:
        place = None if "*" in path else directory(hierarchy, path)
        found = None if place is None or is_root(place) else cgroup_dying.held(place)
        if found is not None:
            yield Level("file", path, found.file_bytes)
            yield Level("shmem", path, found.shmem_bytes)
            yield Level("living_file", path, found.living_file_bytes)
