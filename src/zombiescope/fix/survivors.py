"""Which directories survive and have removed cgroups below them.

`named` are those that an incident's own evidence names: paths at which the ledger saw cgroups die, and parents that the
kernel counted dying ones below while it was recorded. Only from these anything is ever reclaimed.

`candidates` are found on the machine as it is now and are for a person to look at. v2 counts the dying by directory
(nr_dying_descendants). v1 does not: there what a directory holds more than itself and the directories below it *may*
belong to the dying, and may as well be the drift of statistics of living cgroups full of cache. Bounded in directories.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from zombiescope.fix.reclaim import Parent, parent_at, surviving_parent
from zombiescope.kernel import cgroup_census, cgroup_dying
from zombiescope.kernel.cgroup import Hierarchy, directory

MOST_DIRECTORIES = 2_000
MOST_PARENTS = 8
SMALLEST_BYTES = 64 << 10
"""Below this the difference between a directory and its children is the drift of two readings."""


def named(hierarchy: Hierarchy, paths: Iterable[str], ending: Collection[str] = ()) -> list[Parent]:
    """Surviving parents of these paths of the ledger, those that hold most first."""
    found: dict[str, Parent] = {}
    for path in paths:
        if path.startswith("/") and (parent := surviving_parent(hierarchy, path, ending)) is not None:
            found[parent.path] = parent
    held = [parent for parent in found.values() if parent.path == "/" or _holds(parent)]
    return sorted(held, key=lambda parent: -_bytes(parent))[:MOST_PARENTS]


def candidates(hierarchy: Hierarchy) -> list[Parent]:
    """Places to look at, those that hold most first; nothing may be done to them for that."""
    found = {parent.path: parent for parent in (*_counted(hierarchy), *_measured(hierarchy))}
    held = [parent for parent in found.values() if _bytes(parent) > 0]
    return sorted(held, key=lambda parent: -_bytes(parent))[:MOST_PARENTS]


def _counted(hierarchy: Hierarchy) -> Iterator[Parent]:
    if hierarchy.version != 2 or hierarchy.mount is None:
        return
    for path, _ in cgroup_dying.own_dying(hierarchy.mount, MOST_DIRECTORIES)[:MOST_PARENTS]:
        if (place := directory(hierarchy, path)) is not None:
            yield parent_at(hierarchy, path, place)


def _measured(hierarchy: Hierarchy) -> Iterator[Parent]:
    if hierarchy.version != 1 or hierarchy.mount is None:
        return
    walk = cgroup_census.walk_directories(hierarchy.mount, per_second=None)
    for number, (_, path) in enumerate(walk):
        if number >= MOST_DIRECTORIES:
            return
        if path != "/" and (place := directory(hierarchy, path)) is not None:
            parent = parent_at(hierarchy, path, place)
            if _bytes(parent) >= SMALLEST_BYTES:
                yield parent


def _bytes(parent: Parent) -> int:
    return 0 if parent.held is None else parent.held.file_bytes + parent.held.shmem_bytes


def _holds(parent: Parent) -> bool:
    """Whether anything is there to be released; not known counts as yes."""
    return parent.held is None or _bytes(parent) > 0
