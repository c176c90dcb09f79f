"""Who is that pid, and what function is that address: asked while the process lives, in a thread of its own.

Reading /proc/PID/maps or cmdline waits for the process's mmap lock, and a process that holds it for seconds is just
what this recorder exists to see. So the loop never does it (worker.py)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from zombiescope.kernel import cgroup_namespace, process
from zombiescope.kernel.cgroup_path import Owner
from zombiescope.kernel.process import Process
from zombiescope.node.containers.runtimes import verified_owner
from zombiescope.recorder.worker import Worker
from zombiescope.symbols.maps import Mapping, recorded
from zombiescope.symbols.resolver import Frame, UserSymbols, live_symbols

MAX_QUEUED = 4096
MAX_ANSWERS = 4 * MAX_QUEUED
SETTLED_S, MOST_KNOWN = 10.0, 16_384
FRESH_S = 1.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SAME_TICKS = 2
"""/proc rounds a start to ticks, and the kernel takes that time a little before it writes the FORK record."""

RecordedMap = tuple[int, int, int, tuple[bytes, bytes | None, int, int, int]]


@dataclass(frozen=True, slots=True)
class AddressQuestion:
    segment: int
    space: int
    pid: int
    addresses: list[int]
    mappings: list[RecordedMap] | None


@dataclass(frozen=True, slots=True)
class TaskQuestion:
    segment: int
    task: int
    pid: int
    tid: int
    comm: str | None
    ppid: int | None
    cgroup_hint: str | None
    start_ticks: int | None = None
    """When it was started, as far as that is known: a process that started later only has the same pid."""


@dataclass(frozen=True, slots=True)
class AddressAnswer:
    question: AddressQuestion
    frames: list[Frame | None]


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    question: TaskQuestion
    process: Process | None
    cgroup: str | None
    owner: Owner
    comm: str | None
    cpu_cgroup: str | None = None
    """On version 1, where its CPU is limited, if that is another cgroup."""


Question = AddressQuestion | TaskQuestion
Answer = AddressAnswer | TaskAnswer


def _mappings(records: list[RecordedMap]) -> list[Mapping]:
    return [
        recorded(start, end - start, pgoff, path, dev=os.makedev(major, minor), inode=inode, build_id=build_id)
        for start, end, pgoff, (path, build_id, major, minor, inode) in records
    ]


def best_cgroup(cgroups: dict[int, str], memory_hierarchy: int | None) -> str | None:
    """Of a task's paths in several hierarchies the one that says most: memory's, unless that is the root."""
    chosen = cgroups.get(memory_hierarchy) if memory_hierarchy is not None else None
    if chosen and chosen != "/":
        return chosen
    return max(cgroups.values(), key=len, default=None)


class Lookup(Worker[Question, Answer]):
    """Answers questions about processes without ever making the caller wait."""

    def __init__(
        self,
        memory_hierarchy: int | None,
        cpu_hierarchy: int | None = None,
        resolver: Callable[[], UserSymbols] = live_symbols,
        root: str = "/",
    ) -> None:
        super().__init__("lookup", self._answerer, MAX_QUEUED, MAX_ANSWERS)
        self._memory_hierarchy = memory_hierarchy
        self._cpu_hierarchy = cpu_hierarchy
        self._root = root
        self._owner = partial(verified_owner, node=cgroup_namespace.node_root(root))
        self._resolver = resolver
        self._processes = KnownProcesses(root)
        self.refused = 0
        self.denied: dict[str, int] = {}

    def ask(self, question: Question) -> bool:
        taken = super().ask(question)
        self.refused += not taken
        return taken

    def _answerer(self) -> Callable[[Question], Answer]:
        """With symbols of its own: they are used by one thread."""
        symbols = self._resolver()
        spaces: dict[int, int] = {}

        def answer(question: Question) -> Answer:
            if isinstance(question, AddressQuestion):
                _note_exec(spaces, question, symbols)
            found = self._answer(question, symbols)
            self.denied = dict(symbols.denied)
            return found

        return answer

    def _answer(self, question: Question, symbols: UserSymbols) -> Answer:
        if isinstance(question, AddressQuestion):
            return self._resolve(question, symbols)
        found = _same_process(question, self._processes.read(question.pid))
        comm = question.comm
        if comm is None and found is not None:
            comm = (
                found.comm if question.tid == question.pid else _thread_comm(question.pid, question.tid) or found.comm
            )
        cgroup = best_cgroup(found.cgroups, self._memory_hierarchy) if found is not None else question.cgroup_hint
        who = self._owner(cgroup) if cgroup else Owner()
        if found is not None and who.unit is None and who.container is None:
            owners = map(self._owner, found.cgroups.values())
            who = next((one for one in owners if one.unit or one.container), who)
        limited = found.cgroups.get(self._cpu_hierarchy) if found is not None and self._cpu_hierarchy else None
        return TaskAnswer(question, found, cgroup, who, comm, None if limited in (cgroup, "/") else limited)

    def _resolve(self, question: AddressQuestion, symbols: UserSymbols) -> AddressAnswer:
        # A young process is known by its MMAP2 records, which hold when it is gone; an older one is asked itself.
        mappings = _mappings(question.mappings) if question.mappings else None
        frames = symbols.resolve_at(question.pid, question.addresses, mappings)
        return AddressAnswer(question, frames)


class KnownProcesses:
    """Processes that were read before, by pid and start time, over segments and for all their threads.

    A thousand threads of one process would read its command line a thousand times, each time under the lock of its
    memory map, and again in every segment. One that is known and still has its name and parent is asked for its cgroup
    only, and once in FRESH_S: the kernel adds up all threads for its stat, about a millisecond for 20,000 of them. One
    that is younger than SETTLED_S may be about to execute another program, and is read whole."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: dict[int, Process] = {}
        self._checked_s: dict[int, float] = {}
        self.reused = 0

    def read(self, pid: int) -> Process | None:
        now_s, known = time.monotonic(), self._known.pop(pid, None)
        if known is not None and now_s - self._checked_s.get(pid, -FRESH_S) < FRESH_S:
            found: Process | None = known
        else:
            found = None if known is None else process.read_again(known, self._root)
            self._checked_s[pid] = now_s
        if found is not None:
            self.reused += 1
            self._known[pid] = found
            return found
        self._checked_s.pop(pid, None)
        read = process.read(pid, self._root)
        if read is not None and read.cmdline is not None and _age_s(read) >= SETTLED_S:
            self._known[pid] = read
            if len(self._known) > MOST_KNOWN:
                oldest = next(iter(self._known))
                del self._known[oldest]
                self._checked_s.pop(oldest, None)
        return read


def _age_s(found: Process) -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) - found.start_time_ticks / _TICKS_PER_S


def _same_process(question: TaskQuestion, found: Process | None) -> Process | None:
    """None where the process that was meant is gone, and another one has its pid now."""
    if found is None or question.start_ticks is None:
        return found
    return found if found.start_time_ticks <= question.start_ticks + SAME_TICKS else None


def _note_exec(spaces: dict[int, int], question: AddressQuestion, symbols: UserSymbols) -> None:
    """A pid with another space runs another program than before: what was known of its mappings is void."""
    known = spaces.get(question.pid)
    if known is not None and known != question.space:
        symbols.forget(question.pid)
    if len(spaces) > 4096:
        spaces.clear()
    spaces[question.pid] = question.space


def _thread_comm(pid: int, tid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/task/{tid}/comm", "rb") as file:
            return process.printable(file.read().rstrip(b"\n"))
    except OSError:
        return None
