"""The memory cgroups of this machine now, without a recording: what `zombiescope cgroups` shows where no
recorder runs.

Reads the census (cgroup_census.py), the directories of a cgroup1 memory hierarchy, once and only for a few
seconds, and times the statistics of our own leaf. Which path leaks and how fast cannot be seen from one look:
that needs a recorder.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from zombiescope.kernel.cgroup import Hierarchy
from zombiescope.kernel.cgroup_census import CgroupCounter, MemoryCgroups, Refused, walk_directories
from zombiescope.kernel.cgroup_leaf import NotALeafError, read_cost
from zombiescope.kernel.cgroup_namespace import membership

WALK_BUDGET_S = 5.0


@dataclass(frozen=True, slots=True)
class LiveCensus:
    """`live` and `dying` are None where the directories were too many to count, or not all in sight."""

    at_us: int
    hierarchy: str
    total: int
    live: int | None
    dying: int | None
    whole: bool
    """False: only the part of the hierarchy that this container sees was counted."""
    numa_stat_ns: int | None = None
    """What one read of our own leaf's memory.numa_stat took; None when it was not measured."""
    stat_ns: int | None = None
    walk_ns: int | None = None
    """What one more cgroup adds to such a read, on a kernel that walks."""


def live_census(root: str = "/") -> LiveCensus | str:
    """The census, or why there is none."""
    census = CgroupCounter(root)
    try:
        found = census.read()
    finally:
        census.close()
    hierarchy = census.hierarchy
    if found is None or hierarchy is None:
        return census.why or "memory cgroups are not counted by this kernel"
    at_us = time.time_ns() // 1000
    total, live, dying = _counts(found, hierarchy)
    return LiveCensus(at_us, f"v{hierarchy.version}", total, live, dying, census.whole, *_leaf_cost_ns(root, hierarchy))


def _counts(found: MemoryCgroups, hierarchy: Hierarchy) -> tuple[int, int | None, int | None]:
    if found.live_memory is not None and found.dying_memory is not None:
        return found.live_memory + found.dying_memory, found.live_memory, found.dying_memory
    if found.live is not None:
        return found.total, found.live, found.dying
    live = _count_directories(hierarchy)
    return found.total, live, None if live is None else max(0, found.total - live)


def _count_directories(hierarchy: Hierarchy) -> int | None:
    if hierarchy.mount is None or not hierarchy.whole:
        return None
    deadline = time.monotonic() + WALK_BUDGET_S
    count, refused = 0, Refused()
    for _ in walk_directories(hierarchy.mount, per_second=None, refused=refused):
        count += 1
        if time.monotonic() > deadline:
            return None
    return None if refused.count else count


def _leaf_cost_ns(root: str, hierarchy: Hierarchy) -> tuple[int | None, int | None, int | None]:
    """Timed on our own cgroup if it is a leaf. No other is tried: one without directories below it may have
    thousands of dying ones there, and reading it is then the very thing that hurts."""
    own = membership(root=root).get(hierarchy.number)
    if hierarchy.mount is None or own is None:
        return None, None, None
    try:
        cost = read_cost(f"{hierarchy.mount}{own[1]}")
    except (NotALeafError, OSError):
        return None, None, None
    return _ns(cost.numa_stat_s), _ns(cost.stat_s), _ns(cost.walk_s)


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e9)
