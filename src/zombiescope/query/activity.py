"""What the main thread of a process was doing, in cells of a tenth of a second: computing, or waiting, and for what.

From `python` (looks at its stack, ten a second of ranks and of processes on a GPU), `samples` (whether it really had a
core), `whole_stacks` (in which native function it waits), and `waiting` (stopped by a signal, in the kernel for a disk
or a server; itself or its children). A look is a
moment and stands for its cell; looks in a row that saw the same stack and state stand for the time between them. What
nobody looked at is UNKNOWN and stays so.

    collective  it waits, inside a collective
    backward    it waits, inside autograd's engine: for a collective of DDP, or for threads that it gave its work to
    data        it is inside what makes the next batch
    storage     it, or a child that it waits for, waits in the kernel for a disk, a server or FUSE; or it is inside a
                library of a file or object store
    stopped     it, or a child that feeds it, was stopped by a signal
    core        it wanted to run and had no core
    host        it ran
    device      it waits for the accelerator
    other       it waits, and not in a place that is known: a sleep, a lock, a call into C
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from zombiescope.base.time import SECOND_US
from zombiescope.query import native_waits
from zombiescope.query.native_waits import NativeLook
from zombiescope.query.python import Doing, Frames, PythonFrame, PythonThread, own, threads
from zombiescope.query.waiting import WaitingTask, waiting
from zombiescope.store import columns
from zombiescope.store.hangs import ASLEEP, NEVER, STOPPED, SUSPENDED, thing
from zombiescope.store.reader import Recording
from zombiescope.symbols.python import places
from zombiescope.symbols.python.places import Phase

CELL_US = 100_000
CELLS = SECOND_US // CELL_US
DENSE_US = 150_000
"""Looks that are at most so far apart are those of a thread that is looked at ten times a second."""
SPARSE_US = 2_500_000
"""Looks further apart than this say nothing about the time between them."""
NEAR_US = 50_000
"""A native stack that was seen so near to a wait is of that wait."""
CORE_LEAST = 0.2
"""Of a second: wanting to run without running is not noticed below this, for it is judged by 99 samples a second."""

PHASE_LEAST = 0.5
"""Of the looks, that saw it in such a function."""

NAMES = ("unknown", "host", "core", "collective", "backward", "data", "storage", "stopped", "device", "other")
UNKNOWN, HOST, CORE, COLLECTIVE, BACKWARD, DATA, STORAGE, STOPS, DEVICE, OTHER = range(len(NAMES))
WAITS_FOR_RANKS = (COLLECTIVE, BACKWARD)

Cells = npt.NDArray[np.int8]


class Ran(NamedTuple):
    """By process, cores' worth of CPU in each second: of its main thread, and of all of its children."""

    main: dict[int, npt.NDArray[np.float64]]
    workers: dict[int, npt.NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Span:
    """Cells of one window."""

    start_us: int
    cells: int

    @classmethod
    def of(cls, start_us: int, end_us: int) -> Span:
        first = start_us // SECOND_US * SECOND_US
        return cls(first, max(1, -(-(end_us - first) // SECOND_US)) * CELLS)

    @property
    def end_us(self) -> int:
        return self.start_us + self.cells * CELL_US

    def cell(self, at_us: int) -> int:
        return (at_us - self.start_us) // CELL_US

    def us(self, cell: int) -> int:
        return self.start_us + cell * CELL_US

    def between(self, from_us: int, to_us: int) -> slice:
        return slice(max(0, self.cell(from_us)), max(0, min(self.cells, self.cell(to_us - 1) + 1)))


@dataclass(frozen=True, slots=True)
class Activity:
    """Of one process: the state in each cell, and the rows that it is known from."""

    pid: int
    span: Span
    cells: Cells
    doing: tuple[Doing, ...]
    waits: tuple[tuple[int, int, int, str], ...]
    """(from, to, state, what it waited for), where the kernel says: a disk, a server, workers that were stopped."""
    natives: tuple[NativeLook, ...] = ()
    tasks: tuple[WaitingTask, ...] = ()
    """Rows of `waiting` about it and its workers."""
    workers: frozenset[int] = frozenset()
    """Its children that were sampled."""
    fed: npt.NDArray[np.float64] | None = None
    """Cores' worth of CPU that they used in each second."""

    def workers_text(self, from_us: int, to_us: int) -> str | None:
        """What those who feed it did: stopped, in the kernel, asleep, or how much CPU they used."""
        there = [
            one for one in self.tasks
            if one.pid != self.pid and one.since_us < to_us and one.at_us > from_us and one.pid is not None
        ]  # fmt: skip
        for kind, words in ((STOPPED, "stopped (SIGSTOP)"), (SUSPENDED, "suspended in a terminal")):
            if found := {one.pid for one in there if one.kind == kind}:
                return f"{_workers(len(found))} {'are' if len(found) > 1 else 'is'} {words}"
        if blocked := [one for one in there if one.kind not in NEVER]:
            found, last = {one.pid for one in blocked}, blocked[-1]
            where = last.frames[-1] if last.frames else last.wchan
            what = f"{thing(last.kind, last.resource)}" + (f" in {where}" if where else "")
            return f"{_workers(len(found))} {'wait' if len(found) > 1 else 'waits'} for {what} (state D)"
        if asleep := [one for one in there if one.kind == ASLEEP]:
            found, wchan = {one.pid for one in asleep}, asleep[-1].wchan
            return f"{_workers(len(found))} {'sleep' if len(found) > 1 else 'sleeps'}" + (
                f" in {wchan}" if wchan else ""
            )
        if not self.workers or self.fed is None:
            return None
        part = self.fed[max(0, (from_us - self.span.start_us) // SECOND_US) : (to_us - self.span.start_us) // SECOND_US]
        many = len(self.workers)
        each = float(part.mean()) / many if len(part) else 0.0
        return f"{_workers(many)} used {each * 100:.0f}% of a core" + (" each" if many > 1 else "")

    def native_place(self, from_us: int, to_us: int) -> str | None:
        """The native function in which most looks saw it waiting."""
        found = Counter(one.place for one in self.natives if from_us <= one.at_us < to_us)
        return found.most_common(1)[0][0] if found else None

    def why(self, state: int, from_us: int, to_us: int) -> str | None:
        """What it waited for in most of a span; itself before what feeds it."""
        found: Counter[str] = Counter()
        for began_us, ended_us, kind, what in self.waits:
            if kind == state and began_us < to_us and ended_us > from_us:
                found[what] += min(ended_us, to_us) - max(began_us, from_us)
        return found.most_common(1)[0][0] if found else None

    def places(self, cells: npt.NDArray[np.bool_]) -> Counter[str]:
        """Where its main thread was in these cells, each look once."""
        found: Counter[str] = Counter()
        for each in self.doing:
            part = cells[self.span.between(each.from_us, each.to_us + 1)]
            if len(part) and part.any():
                found[place(each.frames)] += max(1, round(each.looks * float(part.mean())))
        return found

    def phase(self, from_us: int, to_us: int) -> Phase | None:
        """Whether it starts, saves a checkpoint or evaluates: most of its looks saw it in a function for that."""
        votes: Counter[Phase] = Counter()
        looks = 0
        for each in self.doing:
            if each.to_us < from_us or each.from_us >= to_us:
                continue
            looks += each.looks
            found = next((one for frame in each.frames if (one := places.phase(frame.name, frame.file))), None)
            if found is not None:
                votes[found] += each.looks
        most = votes.most_common(1)
        return most[0][0] if most and most[0][1] >= PHASE_LEAST * looks else None


def _workers(many: int) -> str:
    return f"its {many} workers" if many > 1 else "its worker"


def place(frames: Sequence[PythonFrame]) -> str:
    """The call into a library, and the line of a person's own code that made it: `all_reduce, train.py:112`."""
    mine, called = own(tuple(frames))
    return f"{mine.name if called is None else called.name}, {mine.place}"


def of_doing(doing: Doing) -> int:
    """The state that one look saw."""
    if doing.state in ("T", "t"):
        return STOPS
    if doing.state == "D":
        return STORAGE
    purpose = places.purpose_of(tuple((frame.name, frame.file) for frame in doing.frames))
    if purpose == "data":
        return DATA
    if purpose == "storage":
        return STORAGE
    if doing.state == "R":
        return HOST
    if doing.state is None and purpose is None:
        return UNKNOWN
    return {"collective": COLLECTIVE, "backward": BACKWARD, "device": DEVICE, None: OTHER}[purpose]


def read(
    recording: Recording,
    pids: set[int],
    start_us: int,
    end_us: int,
) -> dict[int, Activity]:
    """Of processes on a GPU, or of ranks."""
    parents = workers_of(recording, pids)
    ran = on_cpu(recording, pids, start_us // SECOND_US * SECOND_US, end_us, parents)
    wanted = pids | parents.keys()
    looked = threads(recording, start_us, end_us, wanted=lambda pid, tid, _: pid in wanted and pid == tid)
    natives = native_waits.looks(recording, start_us, end_us, pids)
    waits = waiting(recording, start_us, end_us)
    return activities(looked, waits, pids, start_us, end_us, ran, natives, parents)


def activities(
    threads: Iterable[PythonThread],
    waiting: Iterable[WaitingTask],
    pids: Collection[int],
    start_us: int,
    end_us: int,
    ran: Ran | None = None,
    natives: Mapping[int, Sequence[NativeLook]] | None = None,
    parents: Mapping[int, int] | None = None,
) -> dict[int, Activity]:
    """By process. `ran`: None where nothing was sampled, and nobody can be said to want for a core. `natives`: in which
    native functions they waited. `parents`: of the workers that are among the threads."""
    span = Span.of(start_us, end_us)
    threads = [one for one in threads if one.tid == one.pid]
    looked = {one.pid: one for one in threads if one.pid in pids}
    workers: defaultdict[int, list[PythonThread]] = defaultdict(list)
    for one in threads:
        if one.pid not in pids and parents is not None and one.pid in parents:
            workers[parents[one.pid]].append(one)
    waits: dict[int, list[WaitingTask]] = {}
    for task in waiting:
        above = None if parents is None or task.pid is None else parents.get(task.pid)
        for pid in {task.pid, _parent(task), above} & set(pids):
            waits.setdefault(int(pid or 0), []).append(task)
    known = natives or {}
    below: defaultdict[int, set[int]] = defaultdict(set)
    for child, parent in (parents or {}).items():
        below[parent].add(child)
    return {
        pid: replace(
            _activity(pid, span, looked.get(pid), workers[pid], waits.get(pid, []), ran, known.get(pid, ())),
            workers=frozenset(below[pid]),
            fed=None if ran is None else ran.workers.get(pid),
        )
        for pid in pids
    }


def _activity(
    pid: int,
    span: Span,
    thread: PythonThread | None,
    workers: Sequence[PythonThread],
    waits: Sequence[WaitingTask],
    ran: Ran | None,
    natives: Sequence[NativeLook],
) -> Activity:
    cells = np.full(span.cells, UNKNOWN, np.int8)
    doing = tuple(thread.doing) if thread is not None else ()
    told = _told_by(natives, doing)
    for each in doing:
        state = of_doing(each)
        cells[_painted(span, each)] = told.get(each.frames, state) if state == OTHER else state
    if ran is not None:
        _starve(cells, ran.main.get(pid))
    said = [_paint_blocked(cells, span, *each) for each in _blocked(span, workers)]
    said += [one for task in waits if (one := _paint_wait(cells, span, task, pid)) is not None]
    return Activity(pid, span, cells, doing, tuple(said), tuple(natives), tuple(waits))


def _told_by(natives: Sequence[NativeLook], doing: Sequence[Doing]) -> dict[Frames, int]:
    """What a Python line waits for that calls into C, by the native stacks that were seen while it waited there."""
    votes: defaultdict[Frames, Counter[str | None]] = defaultdict(Counter)
    at = 0
    waits = sorted((each for each in doing if each.waits), key=lambda each: each.from_us)
    for one in natives:
        while at < len(waits) and waits[at].to_us + NEAR_US < one.at_us:
            at += 1
        if at < len(waits) and waits[at].from_us - NEAR_US <= one.at_us:
            votes[waits[at].frames][one.purpose] += 1
    states = {"collective": COLLECTIVE, "device": DEVICE}
    most = {frames: counts.most_common(1)[0][0] for frames, counts in votes.items()}
    return {frames: states[purpose] for frames, purpose in most.items() if purpose is not None}


def _painted(span: Span, doing: Doing) -> slice:
    apart_us = (doing.to_us - doing.from_us) / max(1, doing.looks - 1)
    to_us = doing.to_us if apart_us <= SPARSE_US else doing.from_us
    return span.between(doing.from_us, to_us + 1)


def _starve(cells: Cells, ran: npt.NDArray[np.float64] | None) -> None:
    """Of what looked as if it ran, as much waited for a core as the samples do not have of it."""
    for second in range(len(cells) // CELLS):
        part = cells[second * CELLS : (second + 1) * CELLS]
        wanted = np.flatnonzero(part == HOST)
        had = float(ran[second]) if ran is not None and second < len(ran) else 0.0
        lacks = len(wanted) / CELLS - had * len(wanted) / max(1, int((part != UNKNOWN).sum()))
        if lacks >= CORE_LEAST:
            part[wanted[: round(lacks * CELLS)]] = CORE


def _blocked(span: Span, workers: Sequence[PythonThread]) -> Iterator[tuple[slice, str]]:
    """Cells around which most looks saw the workers in state D, and where: reads of less than a second each, from a
    disk or a server that is slow, are too short to be listed as tasks that wait."""
    votes = np.zeros((2, span.cells))
    where: Counter[str] = Counter()
    for worker in workers:
        for each in worker.doing:
            if each.state is not None:
                part = span.between(each.from_us - SECOND_US // 2, each.to_us + SECOND_US // 2)
                votes[int(each.state == "D"), part] += 1
                if each.state == "D":
                    where[place(each.frames)] += each.looks
    edges = np.flatnonzero(np.diff(np.concatenate([[False], votes[1] > votes[0], [False]]).astype(np.int8)))
    for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        yield slice(first, last), where.most_common(1)[0][0]


def _paint_blocked(cells: Cells, span: Span, part: slice, where: str) -> tuple[int, int, int, str]:
    found = cells[part]
    found[found == DATA] = STORAGE
    what = f"a disk or a file server: its worker is in state D in {where}"
    return span.us(part.start), span.us(part.stop), STORAGE, what


def _paint_wait(cells: Cells, span: Span, task: WaitingTask, pid: int) -> tuple[int, int, int, str] | None:
    """What the kernel said of it or of a child: over what a look at its Python saw."""
    if task.kind in (STOPPED, SUSPENDED):
        state = STOPS
        what = "it was stopped by a signal" if task.pid == pid else f"{task.comm} was stopped by a signal"
    elif task.kind not in NEVER:
        state, what = STORAGE, thing(task.kind, task.resource)
    else:
        return None
    part = cells[span.between(task.since_us, task.at_us + 1)]
    # A child holds its parent up only while that waits for it.
    part[slice(None) if task.pid == pid else np.isin(part, (DATA, STORAGE, OTHER, UNKNOWN))] = state
    return task.since_us, task.at_us, state, what


def _parent(task: WaitingTask) -> int | None:
    """Of rows of quiet_processes.py, whose resource is the parent."""
    pid = (task.resource or "").rpartition(":")[2] if task.kind in NEVER else ""
    return int(pid) if pid.isdigit() else None


def workers_of(recording: Recording, pids: Collection[int]) -> dict[int, int]:
    """Child -> parent, of these processes."""
    rows = columns.records(recording.table("tasks", None, None, ("pid", "ppid")))
    return {row["pid"]: row["ppid"] for row in rows if row["ppid"] in pids and row["pid"] not in pids}


def on_cpu(recording: Recording, pids: set[int], start_us: int, end_us: int, parents: Mapping[int, int]) -> Ran | None:
    """None where nothing was sampled."""
    hz = float(recording.node.get("hz") or 0)
    if hz <= 0 or not pids:
        return None
    seconds = max(1, -(-(end_us - start_us) // SECOND_US))
    main: dict[int, int] = {}
    below: dict[int, int] = {}
    for row in columns.records(recording.table("tasks", None, None, ("task", "pid", "tid"))):
        if row["pid"] in pids and row["pid"] == row["tid"]:
            main[row["task"]] = row["pid"]
        elif row["pid"] in parents:
            below[row["task"]] = parents[row["pid"]]
    found = Ran({pid: np.zeros(seconds) for pid in pids}, {pid: np.zeros(seconds) for pid in set(below.values())})
    any_sample = False
    for batch in recording.batches("samples", start_us, end_us, ("time", "task")):
        task, time_us = columns.ids(batch.column("task")), columns.numbers(batch.column("time"))
        any_sample = any_sample or len(task) > 0
        mine = np.isin(task, [*main, *below])
        for number, at_us in zip(task[mine].tolist(), time_us[mine].tolist(), strict=True):
            whose = found.main[main[number]] if number in main else found.workers[below[number]]
            whose[min(seconds - 1, max(0, (at_us - start_us) // SECOND_US))] += 1.0 / hz
    return found if any_sample else None
