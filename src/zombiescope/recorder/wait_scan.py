"""The tasks of this machine that wait and do not move: a bounded walk over /proc, in the helper only.

A task is a suspect when it is in state D, and stuck when a second look finds it in the same wait: it was not given a
CPU in between (where the kernel does not count that: same state and same function). Waits for FUSE are in state S, so
where a FUSE file system is suspected the function of every sleeping task is read too.

Bounds: MOST_TASKS tasks and BUDGET_S of time a look; the next look goes on where this one stopped.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from zombiescope.kernel import blocked_task
from zombiescope.kernel.blocked_task import TaskState
from zombiescope.kernel.procfile import at, names_in
from zombiescope.recorder.wait_kinds import FUSE_WAITS

MOST_TASKS = 30_000
BUDGET_S = 1.0
MOST_SUSPECTS = 512
APART_S = 4.0
"""Two looks that are closer say nothing about whether a task moves."""
SHIM = "containerd-shim"
THROTTLED_IN = "balance_dirty_pages"


@dataclass(slots=True)
class Suspect:
    pid: int
    tid: int
    task: TaskState
    runs: int | None
    wchan: str | None
    since_s: float
    """When it was first seen in this wait."""
    seen_s: float
    written: int | None = None
    bytes_per_s: float | None = None
    """What it was allowed to write since the last look, of one that is stopped from writing."""

    @property
    def age_s(self) -> float:
        return self.seen_s - self.since_s


@dataclass(slots=True)
class Look:
    stuck: list[Suspect] = field(default_factory=list)
    """Those that have not moved since an earlier look."""
    throttled: list[Suspect] = field(default_factory=list)
    """Those that waited at both looks, in balance_dirty_pages at one of them, and ran in between as it lets them."""
    blocked: int = 0
    tasks: int = 0
    shims: int = 0
    complete: bool = True


class TaskScan:
    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._suspects: dict[tuple[int, int], Suspect] = {}
        self._resume = 0

    def look(self, now_s: float, *, fuse: bool = False) -> Look:
        look, before = Look(), self._suspects
        self._suspects = {}
        for pid, tid, task in self._tasks(look):
            wchan = self._sleeps_in(pid, tid) if fuse and task.state == "S" else None
            if task.state == "D" or wchan in FUSE_WAITS:
                look.blocked += 1
                self._note(look, before.get((tid, task.start_ticks)), self._suspect(pid, tid, task, wchan, now_s))
        if not look.complete:  # who was not reached may still be waiting
            for key in list(before)[: MOST_SUSPECTS - len(self._suspects)]:
                self._suspects.setdefault(key, before[key])
        return look

    def _note(self, look: Look, before: Suspect | None, now: Suspect) -> None:
        if len(self._suspects) >= MOST_SUSPECTS:
            return
        self._suspects[now.tid, now.task.start_ticks] = now
        if before is None:
            return
        throttled = THROTTLED_IN in (now.wchan, before.wchan)  # it wakes, and may be met a step before or after
        if before.runs == now.runs and (now.runs is not None or before.wchan == now.wchan):
            now.since_s = before.since_s
            if now.age_s >= APART_S:
                look.stuck.append(now)
        elif throttled:
            now.since_s = before.since_s
            if before.written is not None and now.written is not None and now.seen_s > before.seen_s:
                now.bytes_per_s = (now.written - before.written) / (now.seen_s - before.seen_s)
            if now.age_s >= APART_S:
                look.throttled.append(now)

    def _suspect(self, pid: int, tid: int, task: TaskState, wchan: str | None, now_s: float) -> Suspect:
        place = self.place(pid, tid)
        known = wchan if wchan is not None else blocked_task.wchan(place)
        return Suspect(pid, tid, task, blocked_task.runs(place), known, now_s, now_s, blocked_task.written(place))

    def place(self, pid: int, tid: int) -> str:
        return at(self._root, f"proc/{pid}/task/{tid}")

    def _sleeps_in(self, pid: int, tid: int) -> str | None:
        return blocked_task.wchan(self.place(pid, tid))

    def _tasks(self, look: Look) -> Iterator[tuple[int, int, TaskState]]:
        """From where the last look stopped, once around."""
        pids = sorted(int(name) for name in names_in(at(self._root, "proc")) or () if name.isdigit())
        first = next((place for place, pid in enumerate(pids) if pid >= self._resume), 0)
        ends_s = time.monotonic() + BUDGET_S
        self._resume = 0
        for pid in (*pids[first:], *pids[:first]):
            if look.tasks >= MOST_TASKS or time.monotonic() > ends_s:
                self._resume, look.complete = pid, False
                return
            for name in names_in(at(self._root, f"proc/{pid}/task")) or ():
                task = blocked_task.read_state(self.place(pid, int(name))) if name.isdigit() else None
                if task is not None:
                    look.tasks += 1
                    look.shims += task.comm.startswith(SHIM) and int(name) == pid
                    yield pid, int(name), task
