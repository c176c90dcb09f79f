"""Which processes are on which GPU: who came, who left, whose memory there changed much; rows of `gpu_processes`.

The driver knows pids of the host; who they are is read from /proc while they live. A pid that /proc does not know is
gone already, or we do not see the host's processes: only if the driver names it twice it is a row, without a name.
Bounded: 64 processes of each GPU.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from zombiescope.kernel import cgroup_namespace, process
from zombiescope.kernel.cgroup_path import Owner
from zombiescope.kernel.nvml import MOST_PROCESSES, GpuProcess
from zombiescope.node.containers.runtimes import verified_owner
from zombiescope.store import schema

MUCH_BYTES = 256 << 20
MOST_TEXT = 4096


@dataclass(frozen=True, slots=True)
class Tenant:
    gpu: int
    pid: int
    start_ticks: int | None
    memory_bytes: int | None
    comm: str | None = None
    cgroup: str | None = None
    unit: str | None = None
    container: str | None = None
    pod: str | None = None
    ended: int = 0

    def row(self, now_us: int) -> tuple[Any, ...]:
        return (now_us, *(getattr(self, name) for name in schema.GPU_PROCESSES.names[1:]))


class Tenants:
    """Of one GPU."""

    def __init__(self, gpu: int, root: str = "/") -> None:
        self._gpu = gpu
        self._root = root
        self._known: dict[int, Tenant] = {}
        self._strangers: set[int] = set()

    def update(self, found: Iterable[GpuProcess]) -> list[Tenant]:
        """What changed since the last call; those that left have `ended` 1."""
        here = {one.pid: one for one in list(found)[:MOST_PROCESSES]}
        changed = [self._left(pid) for pid in list(self._known) if pid not in here]
        strangers: set[int] = set()
        for one in here.values():
            stat = process.read_stat(one.pid, self._root)
            known = self._known.get(one.pid)
            if stat is None and known is None and one.pid not in self._strangers:
                strangers.add(one.pid)  # it left just now, or /proc is not the host's: the next look says
                continue
            ticks = None if stat is None else stat.start_time_ticks
            if known is not None and ticks is not None and known.start_ticks != ticks:
                changed.append(self._left(one.pid))  # another process has its number now
                known = None
            if known is None:
                changed.append(self._came(one, ticks))
            elif _much(known.memory_bytes, one.memory_bytes):
                self._known[one.pid] = replace(known, memory_bytes=one.memory_bytes)
                changed.append(self._known[one.pid])
        self._strangers = strangers | (self._strangers & here.keys())
        return changed

    def any_lives(self) -> bool:
        """Whether a process that was on it is still there: a GPU that has to be reset answers no questions about it."""
        return any(process.read_stat(pid, self._root) is not None for pid in self._known)

    def _left(self, pid: int) -> Tenant:
        return replace(self._known.pop(pid), ended=1)

    def _came(self, one: GpuProcess, ticks: int | None) -> Tenant:
        found = None if ticks is None else process.read(one.pid, self._root, cmdline=False)
        path = None if found is None else _cgroup(found)
        who = Owner() if path is None else verified_owner(path, cgroup_namespace.node_root(self._root))
        comm = None if found is None else found.comm
        tenant = Tenant(self._gpu, one.pid, ticks, one.memory_bytes, comm, path, who.unit, who.container, who.pod_uid)
        self._known[one.pid] = tenant
        return tenant


def _cgroup(found: process.Process) -> str | None:
    """Of its paths in several hierarchies the one that says most; a path that nobody could have meant is none."""
    longest = found.systemd_cgroup or max(found.cgroups.values(), key=len, default=None)
    return None if longest is None or len(longest) > MOST_TEXT else longest


def _much(before: int | None, now: int | None) -> bool:
    if before is None or now is None:
        return before is not now
    return abs(now - before) > max(MUCH_BYTES, before // 10)
