"""When a pass of the live diagnosis is ended: when it hangs, not when it is slow.

A pass of half a CPU-second takes minutes in a pod with a small quota, or on an overloaded node: that is when it is
needed. A pass that is killed at a fixed time has used a minute for nothing, and so has the next. A pass that hangs (on
a lock, on a disk that does not answer) uses no CPU time; one that never ends is stopped by its CPU limit (RLIMIT_CPU).

How much memory one may take is decided here, too. kubelet ends all processes of a container that reaches its limit
(memory.oom.group), the recorder with the pass that was too large: so a pass may allocate what the limit leaves, and
fails alone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from zombiescope.kernel import cgroup, cgroup_namespace, process_vitals
from zombiescope.kernel.procfile import at, read_file, read_int

CHECKS = 4
"""While it may be without progress: so often it is asked for its CPU time."""
LEAST_RATIO = 0.005
"""Of a CPU: who gets less is not slow, it waits. A loop around a sleep has a twentieth of that."""
MOST_TIMES = 4.0
"""As long as it may be without progress: so many times that is the end in any case."""

KEPT_FREE = 32 << 20
"""Of the limit, for what the recorder allocates while a pass goes on."""
LEAST_BYTES = 64 << 20
"""A pass gets so much in any case; one that needs more says so by failing."""


def data_limit(most: int, root: str = "/") -> int:
    """RLIMIT_DATA of a pass: what this process has, and what the memory limit of its cgroup leaves; at most `most`."""
    directory = _own_directory(root)
    if directory is None:
        return most
    limit = read_int(f"{directory}/memory.max")  # "max" is no number
    limit = limit if limit is not None else read_int(f"{directory}/memory.limit_in_bytes")
    if limit is None or limit >= 1 << 60:
        return most
    fields = dict(line.split()[:2] for line in (read_file(f"{directory}/memory.stat") or b"").splitlines())
    used = int(fields.get(b"anon", fields.get(b"total_rss", b"0")))
    return min(most, _data_bytes(root) + max(LEAST_BYTES, limit - used - KEPT_FREE))


def _own_directory(root: str) -> str | None:
    """Of the cgroup that has this process's memory; None for the root, which has no limit and is never read."""
    hierarchy = cgroup.of_controller("memory", cgroup.hierarchies(root))
    if hierarchy is None or hierarchy.mount is None:
        return None
    path = cgroup_namespace.membership(root=root).get(hierarchy.number, (frozenset(), "/"))[1]
    directory = hierarchy.mount + path
    return None if ".." in path or cgroup.is_root(directory) else directory


def _data_bytes(root: str) -> int:
    """What counts against RLIMIT_DATA already; a fork begins with all of it."""
    for line in (read_file(at(root, "proc/self/status")) or b"").splitlines():
        if line.startswith(b"VmData:"):
            return int(line.split()[1]) << 10
    return 0


@dataclass(slots=True)
class PassLimit:
    """Of a child process, which may be without progress for `idle_s`."""

    pid: int
    idle_s: float
    _began_s: float = 0.0
    _moved_s: float = 0.0
    _used_s: float = 0.0
    """CPU time when it last had got on."""

    def __post_init__(self) -> None:
        self._began_s = self._moved_s = time.monotonic()

    @property
    def check_s(self) -> float:
        return self.idle_s / CHECKS

    def is_over(self) -> bool:
        now_s, used_s = time.monotonic(), _cpu_s(self.pid)
        if used_s is not None and used_s - self._used_s >= LEAST_RATIO * self.idle_s:
            self._moved_s, self._used_s = now_s, used_s
        return now_s - self._moved_s >= self.idle_s or now_s - self._began_s >= MOST_TIMES * self.idle_s


def _cpu_s(pid: int) -> float | None:
    """CPU time of a process; None where that cannot be read."""
    vitals = process_vitals.read(pid)
    return None if vitals is None else vitals.cpu_s
