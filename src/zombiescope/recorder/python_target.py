"""One process that may run Python, as the reader sees it: found once, looked at often, never stopped.

It is known by when it started and where its stack begins: both are in /proc/PID/stat, the second changes at exec. A
process that is no Python, or one that cannot be read, is left alone for AGAIN_S. Thread ids in the interpreter are
those of the process's own pid namespace; where that is not ours, /proc/PID/task/*/status says which is which.

Which rank of a distributed job it is, its environment says (kernel/rank_environment.py), which is read once. What a
rank forks for its data inherits that: a process whose parent runs Python with the same rank is no rank.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from zombiescope.kernel import cgroup_namespace, process, rank_environment
from zombiescope.kernel.cgroup_path import Owner
from zombiescope.kernel.process import printable
from zombiescope.kernel.process_memory import ProcessMemory
from zombiescope.kernel.procfile import names_in, number, read_file, read_link
from zombiescope.node.containers.runtimes import verified_owner
from zombiescope.symbols.python import runtime
from zombiescope.symbols.python.memory import StrangeError, UnsupportedError
from zombiescope.symbols.python.walk import Interpreter, Stack, Tally

AGAIN_S = 60.0
MOST_MAPS = 4 << 20
MOST_TASKS = 1024
MAP_AGAIN_S = 5.0
DENIED = "it may not be read"
_START, _STACK = 19, 25
"""Fields of /proc/PID/stat after the name: when it started, where its stack begins."""


class Task(NamedTuple):
    state: str
    comm: str


class Target:
    def __init__(self, pid: int, tally: Tally) -> None:
        self.pid = pid
        self._tally = tally
        self.why: str | None = None
        """Why it is left alone, once there is something to say; None also for what is no Python."""
        self.minor: int | None = None
        self.rank: dict[str, Any] | None = None
        """As a row of `ranks` says it."""
        self._identity: tuple[int | None, int | None] | None = None
        self._interpreter: Interpreter | None = None
        self._again_s = 0.0
        self._is_nested = False
        self._outer: dict[int, int] = {}
        self._mapped_s = -MAP_AGAIN_S

    def find(self, now_s: float) -> bool:
        """Whether it is a Python that can be read; looked for anew when it is another program by now."""
        identity = self._read_identity()
        if identity is None:
            self._interpreter = None
            return False
        if identity != self._identity:
            self._identity, self._again_s, self._interpreter = identity, 0.0, None
        if self._interpreter is None and now_s >= self._again_s:
            self._again_s = now_s + AGAIN_S
            self._attach()
        return self._interpreter is not None

    def _read_identity(self) -> tuple[int | None, int | None] | None:
        fields = (read_file(f"/proc/{self.pid}/stat") or b"").rpartition(b")")[2].split()
        return (number(fields[_START]), number(fields[_STACK])) if len(fields) > _STACK else None

    def _attach(self) -> None:
        self.why = self.minor = self.rank = None
        try:
            mapped = runtime.python_files(_maps(self.pid))
            if not mapped:
                return
            memory = ProcessMemory(self.pid)
            found = runtime.find(memory, mapped)
            self._interpreter = Interpreter(memory, found, self._tally)
            self.minor = found.offsets.minor
            self._is_nested = len(_inner_ids(f"/proc/{self.pid}/status")) > 1
            self.rank = _rank(self.pid)
        except UnsupportedError as error:
            self.why = str(error)
        except StrangeError as error:
            self.why = f"a Python whose memory makes no sense ({error})"
        except OSError as error:
            self.why = DENIED if error.errno in (errno.EPERM, errno.EACCES) else None

    # --- threads ------------------------------------------------------------------------------------------------------

    def threads(self, now_s: float) -> list[int]:
        """Of all its Python threads, the ids that we know them by."""
        interpreter = self._interpreter
        if interpreter is None:
            return []
        try:
            inner = interpreter.threads()
        except OSError:
            self._interpreter = None
            return []
        if not self._is_nested:
            return list(inner)
        if any(tid not in self._outer for tid in inner) and now_s - self._mapped_s >= MAP_AGAIN_S:
            self._mapped_s = now_s
            self._outer = _namespace(self.pid)
        return [self._outer[tid] for tid in inner if tid in self._outer]

    def look(self, tids: Iterable[int], now_s: float) -> dict[int, Stack]:
        """The stacks of these threads."""
        interpreter = self._interpreter
        if interpreter is None:
            return {}
        inner = {tid: tid for tid in tids}
        if self._is_nested:
            wanted = set(inner)
            inner = {inside: outside for inside, outside in self._outer.items() if outside in wanted}
        try:
            found = interpreter.look(inner, now_s)
        except OSError:  # gone, or another program by now: find() knows
            self._interpreter = None
            return {}
        return {inner[tid]: stack for tid, stack in found.items()}

    def task(self, tid: int) -> Task | None:
        """Its state in the kernel's letters, and its name."""
        try:
            descriptor = os.open(f"/proc/{self.pid}/task/{tid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            data = os.read(descriptor, 512)  # the two are at its beginning
        except OSError:
            return None
        finally:
            os.close(descriptor)
        head, _, tail = data.rpartition(b")")
        return Task(tail[1:2].decode("ascii", "replace"), printable(head.partition(b"(")[2]))


def _rank(pid: int) -> dict[str, Any] | None:
    """Who it is, where it is a rank of a job."""
    variables = rank_environment.read(pid)
    found = process.read(pid, cmdline=False)
    if found is None:
        return None
    path = found.systemd_cgroup or max(found.cgroups.values(), key=len, default=None)
    said = rank_environment.rank(variables, path)
    if said is None or (_runs_python(found.ppid) and _has_rank_of(variables, found.ppid)):
        return None
    who = verified_owner(path, cgroup_namespace.node_root()) if path else Owner()
    try:
        uid: int | None = Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        uid = None
    return {
        "pid": pid, "start_ticks": found.start_time_ticks, "rank": said.rank, "world_size": said.world_size,
        "local_rank": said.local_rank, "job": said.job, "kind": said.kind, "uid": uid, "ppid": found.ppid,
        "comm": found.comm, "cgroup": path, "unit": who.unit, "container": who.container, "pod": who.pod_uid,
    }  # fmt: skip


def _runs_python(pid: int) -> bool:
    program = read_link(f"/proc/{pid}/exe")
    return program is not None and "python" in program.rpartition("/")[2]


def _has_rank_of(variables: dict[str, str], pid: int) -> bool:
    return rank_environment.same_place(variables, rank_environment.read(pid))


def _maps(pid: int) -> bytes:
    """Raises OSError."""
    descriptor = os.open(f"/proc/{pid}/maps", os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces, size = [], 0
        while size < MOST_MAPS and (piece := os.read(descriptor, 1 << 17)):
            pieces.append(piece)
            size += len(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def _inner_ids(status: str) -> list[int]:
    """The ids of a task, from our pid namespace to its own."""
    for line in (read_file(status) or b"").split(b"\n"):
        if line.startswith(b"NSpid:"):
            return [int(each) for each in line[6:].split() if each.isdigit()]
    return []


def _namespace(pid: int) -> dict[int, int]:
    """The id of each thread in its own pid namespace -> ours."""
    found: dict[int, int] = {}
    for name in (names_in(f"/proc/{pid}/task") or ())[:MOST_TASKS]:
        ids = _inner_ids(f"/proc/{pid}/task/{name}/status")
        if ids:
            found[ids[-1]] = ids[0]
    return found
