"""Who ran, where and in which kernel path, from the stack samples of a short recording.

A sample stands for 1/hz seconds. Only samples that were not idle are stored, so a core without samples was idle, or
was not sampled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from zombiescope._time import SECOND_US
from zombiescope.recording.columns import Ints, Mask, numbers, records
from zombiescope.recording.reader import Recording
from zombiescope.recording.stacks import hottest_path, kernel_path
from zombiescope.views.core_samples import stacks_by_id

WHOLE_RATIO = 0.9
"""A task has a processor to itself in a second when it had this part of it."""

MANY_PIDS = 20
REAL_TIME = frozenset({1, 2, 6})
"""SCHED_FIFO, SCHED_RR, SCHED_DEADLINE."""

_Key = tuple[str | int | None, str | int | None]
_TASK_COLUMNS = ("task", "pid", "tid", "comm", "unit", "container", "cgroup", "policy", "rt_priority")


@dataclass(frozen=True, slots=True)
class Hog:
    """Who held most of something. `path` is the hottest kernel path, outermost first; empty without kernel samples."""

    comm: str | None
    pid: int | None
    tid: int | None
    unit: str | None
    container: str | None
    cgroup: str | None
    cpu_s: float
    kernel_s: float
    path: tuple[str, ...]
    longest_s: float | None = None
    """For how long without a break it had a whole processor; None where that was not asked."""
    pids: int = 1
    rt_priority: int | None = None


@dataclass(frozen=True, slots=True)
class _Task:
    pid: int | None = None
    tid: int | None = None
    comm: str | None = None
    unit: str | None = None
    container: str | None = None
    cgroup: str | None = None
    policy: int | None = None
    rt_priority: int | None = None


class Sampled:
    """The samples of a window, with their names."""

    def __init__(self, recording: Recording, start_us: int, end_us: int) -> None:
        rows = recording.table("samples", start_us, end_us, ("time", "cpu", "task", "stack"))
        self.start_us, self.end_us = start_us, end_us
        self.hz = float(recording.node.get("hz") or 99)
        self.times, self.cpus, self._tasks, self._stacks = (numbers(rows.column(name)) for name in rows.column_names)
        stacks = stacks_by_id(recording, set(self._stacks.tolist()), start_us, end_us)
        self._paths = {stack: kernel_path(frames) for stack, frames in stacks.items()}
        in_kernel = [stack for stack, path in self._paths.items() if path]
        self._in_kernel: Mask = np.isin(self._stacks, np.array(in_kernel, np.int64))
        table = records(recording.table("tasks", start_us, end_us, _TASK_COLUMNS))
        self._names = {row.pop("task"): _Task(**row) for row in table}

    def __len__(self) -> int:
        return len(self.times)

    def seconds_on(self, cpu: int, start_us: int, end_us: int) -> float:
        """Time of a core that samples account for."""
        return float(self._where(cpu, start_us, end_us).sum()) / self.hz

    def hog_on(self, cpu: int, start_us: int | None = None, end_us: int | None = None) -> Hog | None:
        """Who was in the kernel most on this core, or ran there most where nobody was."""
        here = self._where(cpu, start_us or self.start_us, end_us or self.end_us)
        chosen = here & self._in_kernel
        return self._heaviest(chosen if chosen.any() else here, here)

    def first_after(self, cpu: int, hole_us: int, start_us: int, end_us: int) -> Hog | None:
        """Who was seen at the end of the longest hole between two samples of a core, if it is about that long."""
        rows = np.flatnonzero(self._where(cpu, start_us, end_us))
        if len(rows) < 2:
            return None
        steps = np.diff(self.times[rows])
        if steps.max() < hole_us * 0.8:
            return None
        only = np.zeros(len(self.times), bool)
        only[rows[int(steps.argmax()) + 1]] = True
        return self._heaviest(only, only)

    def _where(self, cpu: int, start_us: int, end_us: int) -> Mask:
        where: Mask = (self.cpus == cpu) & (self.times >= start_us) & (self.times < end_us)
        return where

    def _heaviest(self, chosen: Mask, among: Mask) -> Hog | None:
        if not chosen.any():
            return None
        counts = Counter(self._names.get(task, _Task()) for task in self._tasks[chosen].tolist())
        task = counts.most_common(1)[0][0]
        ids = [number for number, known in self._names.items() if known == task]
        return self._hog(task, among & np.isin(self._tasks, np.array(ids, np.int64)))

    def _hog(self, task: _Task, rows: Mask, longest_s: float | None = None) -> Hog:
        kernel = rows & self._in_kernel
        path = hottest_path(self._paths[stack] for stack in self._stacks[kernel].tolist())
        who = (task.comm, task.pid, task.tid, task.unit, task.container, task.cgroup)
        spent = (float(rows.sum()) / self.hz, float(kernel.sum()) / self.hz)
        return Hog(*who, *spent, path, longest_s, 1, task.rt_priority)

    # --- whole processors, on whatever core ------------------------------------------------------------------------

    def kernel_threads_of_time(self) -> list[Hog]:
        """Threads that were in the kernel for whole seconds, though they may have moved from core to core."""
        threads = self._by(lambda task: (task.pid, task.tid) if task.pid else None, self._in_kernel)
        found = (self._whole(tasks, self._in_kernel) for tasks in threads)
        most_s = (self.end_us - self.start_us) / SECOND_US * 1.1  # more is no thread: many share its number
        return _longest_first([hog for hog in found if hog is not None and hog.cpu_s <= most_s])

    def kernel_crowds(self) -> list[Hog]:
        """Many short processes of one name that together were in the kernel for whole seconds: a storm of forks."""
        found = []
        for tasks in self._by(lambda task: (task.comm, task.unit) if task.pid else None, self._in_kernel):
            pids = {task.pid for task in tasks.values()}
            hog = self._whole(tasks, self._in_kernel) if len(pids) >= MANY_PIDS else None
            if hog is not None:
                found.append(replace(hog, pid=None, tid=None, pids=len(pids)))
        return _longest_first(found)

    def real_time(self) -> list[Hog]:
        """Threads of a real-time policy that had a processor to themselves for whole seconds."""
        everything: Mask = np.ones(len(self.times), bool)
        threads = self._by(lambda task: (task.pid, task.tid) if task.policy in REAL_TIME else None, everything)
        found = (self._whole(tasks, everything) for tasks in threads)
        return _longest_first([hog for hog in found if hog is not None])

    def _by(self, key: Callable[[_Task], _Key | None], counted: Mask) -> list[dict[int, _Task]]:
        """Tasks by a key, of each key that has samples enough to fill a second: a large node has thousands."""
        counts = np.bincount(self._tasks[counted]) if counted.any() else np.zeros(0, np.int64)
        groups: dict[_Key, dict[int, _Task]] = {}
        for number, task in self._names.items():
            if (name := key(task)) is not None:
                groups.setdefault(name, {})[number] = task
        enough = self.hz * WHOLE_RATIO
        return [
            group
            for group in groups.values()
            if sum(int(counts[number]) for number in group if number < len(counts)) >= enough
        ]

    def _whole(self, tasks: dict[int, _Task], counted: Mask) -> Hog | None:
        rows: Mask = np.isin(self._tasks, np.array(list(tasks), np.int64))
        longest_s = self._longest_run(self.times[rows & counted])
        if longest_s < 1:
            return None
        return self._hog(max(tasks.values(), key=_known), rows, longest_s)

    def _longest_run(self, times: Ints) -> float:
        """Seconds in a row that are filled."""
        seconds = np.bincount((times - self.start_us) // SECOND_US)
        longest = current = 0
        for count in seconds.tolist():
            current = current + 1 if count >= self.hz * WHOLE_RATIO else 0
            longest = max(longest, current)
        return float(longest)


def _known(task: _Task) -> int:
    """A later row of a task knows more."""
    return sum(getattr(task, name) is not None for name in ("comm", "unit", "container", "cgroup", "policy"))


def _longest_first(hogs: list[Hog]) -> list[Hog]:
    return sorted(hogs, key=lambda hog: (-(hog.longest_s or 0), -hog.kernel_s))
