"""Moves the threads of a process off the cores that serve a network card, and back.

A stop-gap: the walk takes as long as before, but no queue of the card waits behind it. Each thread keeps what it was
allowed before, less those cores; one that is allowed no other core is left where it is. Threads that are started later
inherit from who starts them, so the threads are listed again until none is new; and the way back finds those that were
started since. The scheduler does the moving
(sched_setaffinity); a thread of the kernel that belongs to a core refuses (EINVAL).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from zombiescope.kernel.cpu import format_list
from zombiescope.kernel.process import parse_stat, read_stat
from zombiescope.kernel.procfile import names_in, read_file

ROUNDS = 5
MOST_THREADS = 65_536


@dataclass(frozen=True, slots=True)
class ThreadCpus:
    """Where a thread may run; its start time tells it from a later one with the same number."""

    tid: int
    start_time_ticks: int
    cpus: tuple[int, ...]


def threads(pid: int) -> list[ThreadCpus]:
    """Those that live now, at most MOST_THREADS of them."""
    tids = [int(name) for name in names_in(f"/proc/{pid}/task") or () if name.isdecimal()]
    found = (_thread(pid, tid) for tid in tids[:MOST_THREADS])
    return [one for one in found if one is not None]


def _thread(pid: int, tid: int) -> ThreadCpus | None:
    stat = parse_stat(read_file(f"/proc/{pid}/task/{tid}/stat") or b"")
    try:
        cpus = os.sched_getaffinity(tid)
    except OSError:
        return None
    return None if stat is None else ThreadCpus(tid, stat.start_time_ticks, tuple(sorted(cpus)))


def move_away(pid: int, cores: frozenset[int]) -> list[ThreadCpus]:
    """Takes these cores from every thread; what each had before, for the way back. OSError where that is refused."""
    before: dict[int, ThreadCpus] = {}
    for _ in range(ROUNDS):
        left = [one for one in threads(pid) if _must_move(one, cores)]
        if not left:
            break
        for one in left:
            with suppress(ProcessLookupError):
                os.sched_setaffinity(one.tid, set(one.cpus) - cores)
                before.setdefault(one.tid, one)
    return list(before.values())


def _must_move(thread: ThreadCpus, cores: frozenset[int]) -> bool:
    allowed = set(thread.cpus)
    return bool(allowed & cores) and bool(allowed - cores)


def is_away(pid: int, cores: frozenset[int]) -> bool:
    """No thread is left that could still be moved, and there is one at all."""
    found = threads(pid)
    return bool(found) and not any(_must_move(one, cores) for one in found)


def move_back(pid: int, before: Iterable[ThreadCpus], cores: frozenset[int]) -> int:
    """How many threads have their cores again; those that ended meanwhile, or that are somebody else now, are left.

    Threads and processes that it started since inherited what was left to it: they get what their starter had."""
    known = {one.tid: one for one in before}
    main = known.get(pid)
    moved = 0
    for now in (one for each in (pid, *_descendants(pid)) for one in threads(each)):
        earlier = known.get(now.tid)
        if earlier is not None and earlier.start_time_ticks == now.start_time_ticks:
            moved += _allow(now.tid, earlier.cpus)
        elif main is not None and set(now.cpus) == set(main.cpus) - cores:
            moved += _allow(now.tid, main.cpus)
    return moved


def _allow(tid: int, cpus: Iterable[int]) -> bool:
    try:
        os.sched_setaffinity(tid, cpus)
    except OSError:
        return False
    return True


def _descendants(pid: int) -> list[int]:
    """Processes that it started, and theirs; what lost its parent is not found any more."""
    below: dict[int, list[int]] = {}
    for name in names_in("/proc") or ():
        if name.isdecimal() and (stat := read_stat(int(name))) is not None:
            below.setdefault(stat.ppid, []).append(stat.pid)
    found, pending = [], [pid]
    while pending:
        children = below.pop(pending.pop(), [])
        found += children
        pending += children
    return found


def cost(pid: int, cores: frozenset[int]) -> str:
    """What moving it means, in words."""
    found = threads(pid)
    allowed = {cpu for one in found for cpu in one.cpus}
    fixed = sum(1 for one in found if set(one.cpus) <= cores)
    text = (
        f"its {len(found)} threads may run on {len(allowed - cores)} of the {len(allowed)} cores they have now (not on "
        f"{format_list(allowed & cores)}), and what they start inherits that; its work takes as long as before, and "
        "shares its new cores with the tasks there"
    )
    return f"{text}; {fixed} threads may run nowhere else and stay" if fixed else text
