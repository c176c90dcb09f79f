"""From drained rings to rows: asks who and what while processes live, and writes samples once their frames have
names."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from dataclasses import replace
from time import CLOCK_BOOTTIME, CLOCK_MONOTONIC, clock_gettime_ns, monotonic_ns
from typing import NamedTuple

from zombiescope._native import Sampler
from zombiescope.kernel.process import Process
from zombiescope.recorder.lookup import AddressAnswer, AddressQuestion, Lookup, TaskAnswer, TaskQuestion
from zombiescope.store import schema
from zombiescope.store.batch import Batch

GIVE_UP_NS = 1_500_000_000
"""A sample whose user frames nobody could name by then is written without them."""

YOUNG_DRAINS = 15
MAX_CGROUP_PATHS = 4096
"""Those that were made or asked for last: a process that dies young is in one of them."""

SETTLED_NS = 1_500_000_000
"""A task that was seen at its birth is asked again after this: whoever started it moves it to its cgroup, changes its
scheduling class and its name only then."""
HOT_AGAIN_NS = 5_000_000_000
HOT_SAMPLES = 50
"""In a second; a task that runs so much is asked every five seconds, for it may become real-time at any moment."""
_REAL_TIME = (1, 2)
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class TaskShare(NamedTuple):
    """What a task had of the CPU since the last call."""

    name: str
    """Unit or container or comm."""
    cgroup: str | None
    samples: int
    kernel: int
    real_time: bool = False
    cpu_cgroup: str | None = None
    pid: int = 0
    tid: int = 0


class _Inquiry(NamedTuple):
    question: TaskQuestion
    at_ns: int
    again: bool


def start_ticks(born_ns: int) -> int:
    """A moment of the rings' clock as /proc tells when a process was started: in ticks since the boot."""
    suspended_ns = clock_gettime_ns(CLOCK_BOOTTIME) - clock_gettime_ns(CLOCK_MONOTONIC)
    return (born_ns + suspended_ns) * _TICKS_PER_S // 1_000_000_000


def _parent(asked: TaskQuestion, found: Process | None) -> int | None:
    """Who forked it, where that was seen. Whom /proc names is its parent of now: pid 1, once the real one is gone."""
    forked_by = asked.ppid if asked.tid == asked.pid else None
    return forked_by or (found.ppid if found else asked.ppid)


class SampleWriter:
    """The rows of samples, stacks, frames and tasks of the current segment."""

    def __init__(self, sampler: Sampler, lookup: Lookup, batch: Batch) -> None:
        self._sampler = sampler
        self._lookup = lookup
        self._batch = batch
        self._segment = 0
        self._who: dict[int, tuple[str, str | None, str | None]] = {}  # task -> (unit or its like, cgroup, CPU's)
        self._names: dict[int, str] = {}
        self._cgroup_paths: dict[int, str] = {}
        self._asked: dict[int, _Inquiry] = {}
        self._real_time: set[int] = set()
        self.rows = 0

    def ask(self) -> None:
        """Queues what must be asked while the processes live; call right after a drain."""
        for number, path in self._sampler.take_cgroups():
            self.cgroup_exists(number, path.decode("utf-8", "replace"))
        for task, pid, tid, comm, ppid, cgroup_id, born_ns in self._sampler.take_tasks():
            started = None if born_ns is None else start_ticks(born_ns)
            self._batch.add(schema.TASKS, (task, pid, tid, comm, ppid, started, *(None,) * 9))
            self._names[task] = comm or "(unknown)"
            if tid:
                hint = self._cgroup_path(cgroup_id) if cgroup_id else None
                question = TaskQuestion(self._segment, task, pid, tid, comm, ppid, hint, started)
                self._lookup.ask(question)
                self._asked[task] = _Inquiry(question, monotonic_ns(), again=False)
        for space, pid, addresses in self._sampler.rows.take_wanted():
            maps = self._sampler.mappings(pid)
            self._lookup.ask(AddressQuestion(self._segment, space, pid, addresses, maps))

    def cgroup_exists(self, number: int, path: str) -> None:
        """A cgroup of the perf_event hierarchy: it may be all we ever learn of a process that died young."""
        self._cgroup_paths.pop(number, None)
        if len(self._cgroup_paths) >= MAX_CGROUP_PATHS:
            del self._cgroup_paths[next(iter(self._cgroup_paths))]
        self._cgroup_paths[number] = path

    def _cgroup_path(self, number: int) -> str | None:
        path = self._cgroup_paths.pop(number, None)
        if path is not None:
            self._cgroup_paths[number] = path  # the one that was asked for last goes last
        return path

    def write(self, offset_ns: int, monotonic_ns: int, *, everything: bool = False) -> None:
        """Puts finished samples into the batch, with `everything` also those still waiting for a name."""
        self._take_answers()
        give_up = monotonic_ns if everything else max(0, monotonic_ns - GIVE_UP_NS)
        times, cpus, tasks, stacks, periods = self._sampler.rows.take_samples(offset_ns, give_up)
        self._batch.add_columns(schema.SAMPLES, len(times), [times, cpus, tasks, stacks, periods, None])
        first, lengths, flat = self._sampler.rows.stacks.take_new()
        numbers = array("q", range(first, first + len(lengths)))
        self._batch.add_columns(schema.STACKS, len(lengths), [numbers, (lengths, flat)])
        self._batch.extend(schema.FRAMES, self._sampler.rows.take_frames())
        self.rows += len(times)

    def _take_answers(self) -> None:
        for answer in self._lookup.take():
            if answer.question.segment != self._segment:
                continue
            if isinstance(answer, AddressAnswer):
                self._name_addresses(answer)
            else:
                self._name_task(answer)

    def _name_addresses(self, answer: AddressAnswer) -> None:
        space = answer.question.space
        for address, frame in zip(answer.question.addresses, answer.frames, strict=False):
            number = None if frame is None else self._sampler.rows.frame(frame.name, frame.module, frame.kind)
            self._sampler.rows.answer(space, address, number)

    def _name_task(self, answer: TaskAnswer) -> None:
        asked, found, owner = answer.question, answer.process, answer.owner
        if found is None and asked.task in self._who:
            return  # asked again when it was gone already: the first answer stands
        comm = answer.comm
        row = (
            asked.task, asked.pid, asked.tid, comm, _parent(asked, found),
            found.start_time_ticks if found else asked.start_ticks, found.policy if found else None,
            found.rt_priority if found else None, found.cmdline if found else None, found.exe if found else None,
            answer.cgroup, owner.unit, owner.container, owner.pod_uid, found.uid if found else None,
        )  # fmt: skip
        self._batch.add(schema.TASKS, row)
        self._remember_start(asked.task, found)
        name = owner.unit or owner.container or comm or self._names.get(asked.task, "?")
        self._who[asked.task] = (name, answer.cgroup, answer.cpu_cgroup)
        if found is not None and found.policy in _REAL_TIME and found.ppid not in (0, 2):
            self._real_time.add(asked.task)
        else:
            self._real_time.discard(asked.task)

    def _remember_start(self, task: int, found: Process | None) -> None:
        """So that whoever has its pid when it is asked again is not taken for it."""
        inquiry = self._asked.get(task)
        if inquiry is not None and found is not None and inquiry.question.start_ticks is None:
            question = replace(inquiry.question, start_ticks=found.start_time_ticks)
            self._asked[task] = inquiry._replace(question=question)

    def shares(self) -> Iterator[TaskShare]:
        """Since the last call, a second ago."""
        now_ns = monotonic_ns()
        for task, samples, kernel in self._sampler.take_shares():
            name, cgroup, cpu_cgroup = self._who.get(task, (self._names.get(task, "?"), None, None))
            asked = self._asked.get(task)
            self._ask_again(task, asked, samples, now_ns)
            pid, tid = (0, 0) if asked is None else (asked.question.pid, asked.question.tid)
            yield TaskShare(name, cgroup, samples, kernel, task in self._real_time, cpu_cgroup, pid, tid)

    def _ask_again(self, task: int, asked: _Inquiry | None, samples: int, now_ns: int) -> None:
        if asked is None or (asked.again and samples < HOT_SAMPLES):
            return
        if now_ns - asked.at_ns >= (HOT_AGAIN_NS if asked.again else SETTLED_NS):
            self._lookup.ask(replace(asked.question, comm=None))
            self._asked[task] = _Inquiry(asked.question, now_ns, again=True)

    def sweep(self) -> None:
        """Forgets processes that are gone; once a second."""
        self._sampler.sweep(YOUNG_DRAINS)

    def next_segment(self) -> None:
        """All samples must have been written. Numbers start anew."""
        self._sampler.next_segment()
        self._segment += 1
        self._who.clear()
        self._names.clear()
        self._asked.clear()
        self._real_time.clear()
