"""Which cores serve no network card, for work that would hold one: where a packet waits, a training job does."""

from __future__ import annotations

import os

from zombiescope.fix import holds
from zombiescope.kernel.cpu import parse_list
from zombiescope.kernel.nic_queue import nic_queues
from zombiescope.kernel.procfile import at, names_in, read_file

MOST_PROCESSES = 1 << 16


def nic_cores(root: str = "/") -> frozenset[int]:
    """Cores to which the interrupt of some queue goes."""
    return frozenset(cpu for queue in nic_queues(root) for cpu in queue.cpus)


LEAST_SHARE = 0.25
"""Of the cores that a hog may use, so many have to be quiet and free: else it would land on another queue's core, or on
one that a rank is pinned to."""


def pinned_cores(root: str = "/", hog: int | None = None, most: int = MOST_PROCESSES) -> frozenset[int]:
    """Cores that belong to others than the hog: those that processes computing on an accelerator are pinned to, and
    those of a cpuset (a pod of the static CPU manager, a job of Slurm), if they are fewer than half of the node's."""
    everywhere = os.cpu_count() or 1
    own = None if hog is None else _cpuset(str(hog), root)
    found: set[int] = set()
    for name in [name for name in names_in(at(root, "proc")) or () if name.isdecimal()][:most]:
        status = read_file(at(root, f"proc/{name}/status")) or b""
        line = next((row for row in status.split(b"\n") if row.startswith(b"Cpus_allowed_list:")), b"")
        cores = parse_list(line.partition(b":")[2].strip())
        if not cores or len(cores) >= everywhere / 2 or int(name) == hog:
            continue
        cpuset = _cpuset(name, root)
        if cpuset not in ("", "/", own) or holds.uses_accelerator([int(name)], root) is not None:
            found |= set(cores)
    return frozenset(found)


def _cpuset(pid: str, root: str) -> str:
    """The cgroup that says where a process may run; "/" where none does."""
    return (read_file(at(root, f"proc/{pid}/cpuset")) or b"").decode("utf-8", "replace").strip()


def why_too_few(allowed: frozenset[int], leaves: frozenset[int], busy: frozenset[int], pinned: frozenset[int]) -> str:
    """Why a hog that may use `allowed` is not moved off `leaves`; empty where enough quiet cores are left to it."""
    free = allowed - leaves - busy - pinned
    if free and len(free) >= LEAST_SHARE * len(allowed):
        return ""
    taken = (
        f", and {len(pinned & allowed)} belong to a cpuset or to processes on accelerators" if pinned & allowed else ""
    )
    return (
        f"{len(free)} of the {len(allowed)} cores it may use would be quiet: {len(busy & allowed)} serve a network "
        f"card{taken}"
    )


def quiet_cores(busy: frozenset[int] | None = None) -> frozenset[int]:
    """Of those that we may run on; none where every core serves a card, or this process may use no other."""
    return frozenset(os.sched_getaffinity(0)) - (nic_cores() if busy is None else busy)
