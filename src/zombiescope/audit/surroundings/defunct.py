"""Defunct processes: dead, and not yet waited for by their parent. State Z in /proc/PID/stat.

They are another kind of zombie than dying cgroups: each holds a process number and no memory, and goes when its
parent waits for it or ends. One look tells little, because every process is defunct for a moment: two looks tell which
of them stay.

Cost: one small file a process. Absence: with hidepid= other users' processes are not in /proc at all.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass

from zombiescope.kernel.process import ProcessStat, read_stat
from zombiescope.kernel.procfile import at

ANOTHER_KIND = (
    "they are another kind of zombie than dying cgroups: each holds a process number and no memory, until its parent "
    "waits for it"
)

Look = dict[int, ProcessStat]


@dataclass(frozen=True, slots=True)
class Parent:
    pid: int
    comm: str | None
    defunct: int


@dataclass(frozen=True, slots=True)
class Defunct:
    """`lasting` were there in both looks; `parents` are theirs, most children first."""

    now: int
    lasting: int
    parents: tuple[Parent, ...]
    processes: int
    others_hidden: bool


def look(root: str = "/") -> Look | None:
    """Every process that may be seen; None when /proc cannot be listed."""
    try:
        pids = [int(name) for name in os.listdir(at(root, "proc")) if name.isdigit()]  # noqa: PTH208 - names only
    except OSError:
        return None
    found = ((pid, read_stat(pid, root)) for pid in pids)
    return {pid: stat for pid, stat in found if stat is not None}


def defunct(before: Look | None, after: Look | None) -> Defunct | None:
    if after is None:
        return None
    dead = [stat for stat in after.values() if stat.state == "Z"]
    old = before or {}
    stayed = [stat for stat in dead if _same(old.get(stat.pid), stat)]
    counts = Counter(stat.ppid for stat in stayed)
    parents = tuple(Parent(ppid, _comm(after, ppid), count) for ppid, count in counts.most_common())
    return Defunct(len(dead), len(stayed), parents, len(after), 1 not in after)


def _same(old: ProcessStat | None, new: ProcessStat) -> bool:
    return old is not None and old.state == "Z" and old.start_time_ticks == new.start_time_ticks


def _comm(processes: Look, pid: int) -> str | None:
    found = processes.get(pid)
    return found.comm if found is not None else None
