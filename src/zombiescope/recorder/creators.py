"""Who makes a cgroup: the process's name, user and program, and the unit or container in which it runs.

A creator may have joined what it made before we look: a process that makes its own child cgroup and enters it would be
said to run in one of its own children. What lies inside the path just made, or in another of its family, is therefore
not believed; the directory above it is. systemd's own hierarchy comes first: there nobody but systemd moves processes.

Read once a second for a process at most, so that a storm costs nothing: and read again after that, because a number may
belong to somebody else by then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from zombiescope.kernel import cgroup_namespace, process
from zombiescope.kernel.cgroup_path import Owner, normalise
from zombiescope.kernel.process import Process
from zombiescope.node.containers.runtimes import verified_owner
from zombiescope.recorder.ledger import Creator

MAX_KNOWN = 512
HOLDS_S = 1.0
"""A number is not given to another process so soon."""


@dataclass(slots=True)
class _Known:
    comm: str | None
    unit: str | None
    container: str | None
    start_time_ticks: int | None
    read_s: float
    uid: int | None = None
    exe: str | None = None


class Creators:
    def __init__(
        self, comm_of: Callable[[int], str | None], root: str = "/", now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._comm_of = comm_of
        self._root = root
        self._node_root = cgroup_namespace.node_root(root)
        self._now_s = now_s
        self._known: dict[int, _Known] = {}

    def of(self, path: str, pid: int, tid: int) -> Creator | None:
        """Who made the cgroup at a path; None where nothing is known but a number."""
        comm = self._comm_of(tid)
        known = self._look(path, pid, comm)
        name = comm or known.comm
        return None if name is None else Creator(name, pid, known.unit, known.container, known.uid, known.exe)

    def _look(self, path: str, pid: int, comm: str | None) -> _Known:
        known, now_s = self._known.get(pid), self._now_s()
        if known is not None and (comm is None or known.comm in (None, comm)):
            if now_s - known.read_s < HOLDS_S:
                return known
            stat = process.read_stat(pid, self._root)
            if stat is not None and stat.start_time_ticks == known.start_time_ticks:
                known.read_s = now_s
                return known
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        found = process.read(pid, self._root, cmdline=False)
        who = _owner(found, path, self._node_root) if found is not None else Owner()
        started = found.start_time_ticks if found is not None else None
        name = comm or (found.comm if found is not None else None)
        uid, exe = (None, None) if found is None else (found.uid, found.exe)
        known = self._known[pid] = _Known(name, who.unit, who.container, started, now_s, uid, exe)
        return known


def _owner(found: Process, made: str, node: str) -> Owner:
    owners = [verified_owner(path, node) for path in _places(found, made)]
    unit = next((one.unit for one in owners if one.unit), None)
    container = next((one.container for one in owners if one.container), None)
    return Owner(unit=unit, container=container)


def _places(found: Process, made: str) -> Iterator[str]:
    """Where a process is, systemd's word first; of its own children's places the directory above them."""
    above, family = made.rpartition("/")[0], normalise(made)
    for path in (found.systemd_cgroup, *found.cgroups.values()):
        if path:
            is_own = f"{path}/".startswith(f"{made}/") or f"{normalise(path)}/".startswith(f"{family}/")
            yield above if is_own else path
