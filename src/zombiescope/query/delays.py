"""Who waited for a core, for how long, and who ran there meanwhile: from snapshots of the schedule.

A wait is a row of the table `schedule`: a task that could have run, or a softirq that was raised. Whoever ran on that
core in this time delayed it, and the overlap is by how much. That is measured, not concluded: two things at the same
time on one core, one of which could not go on before the other had left.

Where a task slept until another one woke it, and that one had waited for a core meanwhile, the delay reached it
`through` that one. That is followed over MOST_LINKS tasks.

What is not here was not measured: only watched cores, and only as far back as their rings reached, are in a snapshot.
Cost: one pass over the rows of the window and a search for each wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np

from zombiescope.model.answer import OPTIONAL, Field
from zombiescope.store import columns, schema
from zombiescope.store.columns import Ints
from zombiescope.store.reader import Recording

LEAST_S = 0.001
MOST_LINKS = 3
LATE_US = 75_000_000
"""A wait that began in the window may have ended so much later."""
MOST_WAITS = 200_000
MOST_PARTIES = 64
"""Of one wait: a core that switches often was kept busy by many."""


@dataclass(frozen=True, slots=True)
class Party:
    """A thread."""

    pid: Annotated[int | None, Field("pid")]
    tid: int | None
    comm: str | None
    unit: str | None
    container: str | None
    pod: str | None

    @property
    def name(self) -> str:
        return self.comm or "?"


@dataclass(frozen=True, slots=True)
class Victim(Party):
    """A thread, or a softirq: then `softirq` is its name (net_rx, ...), and `queue` the network device or the interrupt
    that raised it, where that was seen."""

    softirq: str | None = None
    queue: str | None = None

    @property
    def name(self) -> str:
        if self.softirq is None:
            return self.comm or "?"
        return f"{self.softirq.upper()} of {self.queue}" if self.queue else self.softirq.upper()


@dataclass(frozen=True, slots=True)
class Delay:
    """One victim, delayed by one thread on one core: `seconds` in `waits` waits from `from` to `to`."""

    victim: Victim
    by: Annotated[Party | None, Field(means="null: it is not known who ran there, or interrupts were off")]
    cpu: Annotated[int, Field("core")]
    from_us: int
    to_us: int
    seconds: Annotated[float, Field("delayed", "duration")]
    longest_s: Annotated[float, Field("longest", "duration", means="in one wait")]
    waits: Annotated[int, Field("waits", "count")]
    goes_on: Annotated[bool, Field(means="the last of them had not ended when the snapshot was taken")]
    longest_from_us: Annotated[int | None, OPTIONAL, Field(means="when the longest wait began")]
    longest_to_us: Annotated[int | None, OPTIONAL, Field(means="when the longest wait ended")]
    through: Annotated[list[Party], Field(means="threads that were delayed and then woke the victim, nearest first")]
    frames: Annotated[
        list[str] | None, OPTIONAL, Field(means="stack of `by` in that time, outermost first, if it was sampled")
    ] = None


@dataclass(frozen=True, slots=True)
class Watched:
    """A core and the time for which its schedule is known."""

    cpu: int
    from_us: int
    to_us: int


@dataclass(frozen=True, slots=True)
class Delays:
    """`watched`: without any there is no snapshot of the window, and no answer; that is not "no delay"."""

    delays: list[Delay]
    watched: list[Watched]

    @property
    def watched_cpus(self) -> list[int]:
        return sorted({one.cpu for one in self.watched})

    @property
    def reach_s(self) -> float | None:
        """For how much of the window the schedule is known, on the core of which least is known."""
        known: dict[int, int] = {}
        for one in self.watched:
            known[one.cpu] = known.get(one.cpu, 0) + one.to_us - one.from_us
        return min(known.values()) / 1e6 if known else None

    def by(self, pids: Iterable[int]) -> list[Delay]:
        """Those that processes caused."""
        wanted = set(pids)
        return [one for one in self.delays if one.by is not None and one.by.pid in wanted]

    def of(self, pids: Iterable[int]) -> list[Delay]:
        """Those that processes suffered."""
        wanted = set(pids)
        return [one for one in self.delays if one.victim.softirq is None and one.victim.pid in wanted]


def delays(
    recording: Recording,
    start_us: int,
    end_us: int,
    *,
    least_s: float = LEAST_S,
    wanted: Callable[[Victim], bool] | None = None,
) -> Delays:
    """Longest first. `least_s`: in all; `wanted`: only of these victims."""
    rows = recording.table("schedule", start_us, end_us + LATE_US)
    if not len(rows):
        return Delays([], [])
    slices = _Slices(rows, _tasks(recording, start_us, end_us + LATE_US))
    return _Analysis(slices, start_us, end_us).made(least_s, wanted)


Slice = tuple[str, int, int, int, "Party | None", str | None]
"""Kind, core, from, to, thread, name."""


def slices(recording: Recording, start_us: int, end_us: int) -> Iterator[Slice]:
    """Everything that the snapshots of a window hold, by core and beginning."""
    rows = recording.table("schedule", start_us, end_us + LATE_US)
    found = _Slices(rows, _tasks(recording, start_us, end_us + LATE_US))
    for cpu in sorted({int(one) for one in found.cpu}):
        for row in np.flatnonzero((found.cpu == cpu) & (found.begin < end_us)).tolist():
            name = found.names[row] if found.names[row] is not None else found.vector(row)
            yield found.kinds[row], cpu, int(found.begin[row]), int(found.end[row]), found.party(row), name


@dataclass(frozen=True, slots=True)
class LongWait:
    """One wait, and who ran there longest meanwhile; null: not known."""

    victim: Victim
    by: Party | None
    cpu: int
    from_us: int
    to_us: int


def long_waits(
    recording: Recording, start_us: int, end_us: int, most: int, most_rows: int
) -> tuple[list[LongWait], list[Watched], bool]:
    """The longest single waits of a window and the spans that are known, for a picture. More rows than `most_rows` are
    not read: then there are no waits, and the answer ends with True."""
    rows = recording.table("schedule", start_us, end_us + LATE_US)
    if not len(rows) or len(rows) > most_rows:
        return [], [], len(rows) > most_rows
    analysis = _Analysis(_Slices(rows, _tasks(recording, start_us, end_us + LATE_US)), start_us, end_us)
    return analysis.longest(most), analysis.watched(), False


# --- rows ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Wait:
    cpu: int
    begin: int
    end: int
    task: int
    waker: int
    slept: int
    vector: int
    queue: str | None
    goes_on: bool


class _Slices:
    """The rows, what was written twice once: a wait or a run that had not ended is in the next snapshot again."""

    def __init__(self, rows: Any, tasks: dict[int, Party]) -> None:
        self.tasks = tasks
        kinds = columns.texts(rows.column("kind"))
        begin, end = (columns.numbers(rows.column(name)) for name in ("begin", "time"))
        cpu, task, waker, vector = (columns.ids(rows.column(name)) for name in ("cpu", "task", "waker", "vector"))
        slept = np.where(columns.present(rows.column("slept")), columns.numbers(rows.column("slept")), 0)
        names, open_ = columns.texts(rows.column("name")), columns.ids(rows.column("open"))
        whose = np.array([_identity(tasks.get(one), one) for one in task.tolist()], np.int64)
        last: dict[tuple[Any, ...], int] = {}
        for row in np.argsort(end, kind="stable").tolist():
            last[kinds[row], cpu[row], begin[row], whose[row], vector[row]] = row
        kept = np.array(sorted(last.values(), key=lambda row: (begin[row], end[row])), np.int64)
        self.kinds = [kinds[row] or "" for row in kept.tolist()]
        self.names = [names[row] for row in kept.tolist()]
        self.begin, self.end, self.cpu, self.task = begin[kept], end[kept], cpu[kept], task[kept]
        self.waker, self.vectors, self.slept, self.open = waker[kept], vector[kept], slept[kept], open_[kept]
        self.is_kind = np.array(self.kinds)

    def party(self, row: int) -> Party | None:
        return self.tasks.get(int(self.task[row]))

    def vector(self, row: int) -> str | None:
        number = int(self.vectors[row])
        return schema.SOFTIRQS[number] if 0 <= number < len(schema.SOFTIRQS) else None

    def waits(self) -> Iterator[_Wait]:
        for row in np.flatnonzero((self.is_kind == "wait") | (self.is_kind == "softirq wait")).tolist():
            yield _Wait(
                int(self.cpu[row]), int(self.begin[row]), int(self.end[row]), int(self.task[row]), int(self.waker[row]),
                int(self.slept[row]), int(self.vectors[row]), self.names[row], bool(self.open[row] & 2),
            )  # fmt: skip


def _identity(party: Party | None, task: int) -> int:
    """The same thread has another number in the next segment."""
    return -task - 1 if party is None or party.tid is None else party.tid


def _tasks(recording: Recording, start_us: int, end_us: int) -> dict[int, Party]:
    names = ("task", "pid", "tid", "comm", "unit", "container", "pod")
    rows = columns.records(recording.table("tasks", start_us, end_us, names))
    return {row["task"]: Party(*(row[name] for name in names[1:])) for row in rows}


@dataclass(slots=True)
class _Runs:
    """What ran on one core, one after the other."""

    begin: Ints
    end: Ints
    task: Ints

    def during(self, start_us: int, end_us: int) -> Iterator[tuple[int, int, int]]:
        """(task, from, to), cut to the span."""
        first = int(np.searchsorted(self.end, start_us, "right"))
        last = int(np.searchsorted(self.begin, end_us, "left"))
        for row in range(first, last):
            yield int(self.task[row]), max(start_us, int(self.begin[row])), min(end_us, int(self.end[row]))


def _runs(found: _Slices) -> dict[int, _Runs]:
    made = {}
    for cpu in np.unique(found.cpu).tolist():
        chosen = np.flatnonzero((found.is_kind == "run") & (found.cpu == cpu))
        begin, end = found.begin[chosen].copy(), found.end[chosen]
        # A run that a later snapshot cut at its own beginning overlaps the one that an earlier snapshot saw begin.
        begin[1:] = np.maximum(begin[1:], np.maximum.accumulate(end)[:-1]) if len(begin) else begin[1:]
        whole = end > begin
        made[cpu] = _Runs(begin[whole], end[whole], found.task[chosen][whole])
    return made


# --- who delayed whom ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Sum:
    cpu: int
    from_us: int
    to_us: int
    us: int = 0
    longest_us: int = 0
    longest: tuple[int | None, int | None] = (None, None)
    waits: int = 0
    goes_on: bool = False
    through: list[Party] = field(default_factory=list)

    def add(self, from_us: int, to_us: int, us: int, *, goes_on: bool) -> None:
        self.from_us, self.to_us = min(self.from_us, from_us), max(self.to_us, to_us)
        self.us += us
        if us > self.longest_us:
            self.longest_us, self.longest = us, (from_us, to_us)
        self.waits += 1
        self.goes_on = self.goes_on or goes_on


class _Analysis:
    def __init__(self, found: _Slices, start_us: int, end_us: int) -> None:
        self._slices, self._start_us, self._end_us = found, start_us, end_us
        self._runs = _runs(found)
        waits = [one for one in found.waits() if one.begin < end_us and one.end > start_us]
        self._waits = sorted(waits, key=lambda one: one.begin - one.end)[:MOST_WAITS]
        self._of_task: dict[int, list[_Wait]] = {}
        for one in self._waits:
            if one.vector < 0:
                self._of_task.setdefault(_identity(found.tasks.get(one.task), one.task), []).append(one)
        self._sums: dict[tuple[Victim, Party | None, int, tuple[Party, ...]], _Sum] = {}

    def made(self, least_s: float, wanted: Callable[[Victim], bool] | None) -> Delays:
        for wait in self._waits:
            victim = self._victim(wait)
            if wanted is None or wanted(victim):
                self._direct(victim, wait)
                self._through(victim, wait, wait, (), MOST_LINKS)
        found = [
            Delay(victim, by, cpu, one.from_us, one.to_us, one.us / 1e6, one.longest_us / 1e6, one.waits, one.goes_on,
                  one.longest[0], one.longest[1], list(through))
            for (victim, by, cpu, through), one in self._sums.items()
            if one.us >= least_s * 1e6
        ]  # fmt: skip
        found.sort(key=lambda one: (len(one.through) > 0, -one.seconds))
        return Delays(found, self.watched())

    def longest(self, most: int) -> list[LongWait]:
        found = []
        for wait in self._waits[:most]:
            begin, end = max(self._start_us, wait.begin), min(self._end_us, wait.end)
            by = self._culprits(wait, begin, end)
            found.append(LongWait(self._victim(wait), next(iter(by), None), wait.cpu, begin, end))
        return sorted(found, key=lambda one: one.from_us)

    def _victim(self, wait: _Wait) -> Victim:
        if wait.vector >= 0:
            name = schema.SOFTIRQS[wait.vector] if wait.vector < len(schema.SOFTIRQS) else str(wait.vector)
            return Victim(None, None, None, None, None, None, name, wait.queue)
        party = self._slices.tasks.get(wait.task)
        if party is None:
            return Victim(None, None, None, None, None, None)
        return Victim(party.pid, party.tid, party.comm, party.unit, party.container, party.pod)

    def _culprits(self, wait: _Wait, start_us: int, end_us: int) -> dict[Party | None, int]:
        """Who ran in the wait, and for how long."""
        runs = self._runs.get(wait.cpu)
        start_us, end_us = max(start_us, wait.begin), min(end_us, wait.end)
        found: dict[Party | None, int] = {}
        for task, from_us, to_us in runs.during(start_us, end_us) if runs is not None else ():
            party = self._slices.tasks.get(task)
            if wait.vector >= 0 or party is None or party != self._slices.tasks.get(wait.task):
                found[party] = found.get(party, 0) + to_us - from_us
        rest = end_us - start_us - sum(found.values())
        if rest > 0 and rest > (end_us - start_us) // 2:
            found[None] = found.get(None, 0) + rest
        longest = sorted(found, key=lambda one: -found[one])[:MOST_PARTIES]
        return {one: found[one] for one in longest}

    def _direct(self, victim: Victim, wait: _Wait) -> None:
        for by, us in self._culprits(wait, self._start_us, self._end_us).items():
            self._add(victim, by, wait, us, (), goes_on=wait.goes_on)

    def _through(self, victim: Victim, wait: _Wait, link: _Wait, through: tuple[Party, ...], left: int) -> None:
        """Whoever woke it had waited, while it slept."""
        waker = self._slices.tasks.get(link.waker)
        if waker is None or not link.slept or not left or waker in through:
            return
        through = (*through, waker)
        for earlier in self._of_task.get(_identity(waker, link.waker), ()):
            if link.slept < earlier.end <= link.begin:
                for by, us in self._culprits(earlier, max(self._start_us, link.slept), self._end_us).items():
                    if by is not None and by.tid != victim.tid:
                        self._add(victim, by, earlier, us, through, goes_on=False)
                self._through(victim, wait, earlier, through, left - 1)

    def _add(
        self, victim: Victim, by: Party | None, wait: _Wait, us: int, through: tuple[Party, ...], *, goes_on: bool
    ) -> None:
        begin, end = max(self._start_us, wait.begin), min(self._end_us, wait.end)
        key = victim, by, wait.cpu, through
        self._sums.setdefault(key, _Sum(wait.cpu, begin, end)).add(begin, end, us, goes_on=goes_on)

    def watched(self) -> list[Watched]:
        """The spans of each core, joined where they touch."""
        found: list[Watched] = []
        cpus, begin, end = self._slices.cpu, self._slices.begin, self._slices.end
        rows = np.flatnonzero(self._slices.is_kind == "reach").tolist()
        for row in sorted(rows, key=lambda row: (cpus[row], begin[row])):
            from_us, to_us = max(self._start_us, int(begin[row])), min(self._end_us, int(end[row]))
            before = found[-1] if found and found[-1].cpu == int(cpus[row]) else None
            if from_us >= to_us:
                continue
            if before is not None and from_us <= before.to_us + 1000:
                found[-1] = replace(before, to_us=max(before.to_us, to_us))
            else:
                found.append(Watched(int(cpus[row]), from_us, to_us))
        return found


def with_frames(recording: Recording, found: Sequence[Delay], most: int = 20) -> list[Delay]:
    """The longest ones with the stack that their culprit was in most while it delayed them."""
    return [_framed(recording, one) if number < most else one for number, one in enumerate(found)]


def _framed(recording: Recording, delay: Delay) -> Delay:
    from zombiescope.query.selection import Filters, Selection

    if delay.by is None or delay.by.tid is None:
        return delay
    filters = Filters(cpus=frozenset((delay.cpu,)), tids=frozenset((delay.by.tid,)))
    selection = Selection(recording, delay.from_us, delay.to_us + 1, filters)
    counts = selection.counts()
    if not counts.any():
        return delay
    stack = int(counts.argmax())
    names = [function.name for function in selection.stacks.of(stack)] if stack < selection.stacks.count - 1 else []
    return replace(delay, frames=names) if names else delay


# --- for a person ----------------------------------------------------------------------------------------------------


def sentence(delay: Delay) -> str:
    """For a person: "NET_RX of eth0 waited 6,599 ms for core 39: kubelet (pid 1893) ran there"."""
    often = "" if delay.waits == 1 else f" in {delay.waits:,} waits"
    by = "it is not known what ran there" if delay.by is None else f"{named(delay.by)} ran there"
    way = "".join(f", which delayed {named(one)}" for one in reversed(delay.through))
    then = f"{way}, which woke {named(delay.victim)}" if way else ""
    who = named(delay.victim) if not way else named(delay.through[-1])
    return f"{who} waited {delay.seconds * 1000:,.0f} ms{often} for core {delay.cpu}: {by}{then}"


def named(one: Party) -> str:
    if isinstance(one, Victim) and one.softirq is not None:
        return one.name
    whose = one.unit or one.pod or one.container
    thread = f"pid {one.pid}" if one.tid in (None, one.pid) else f"pid {one.pid}, thread {one.tid}"
    return f"{one.name} ({thread}{f', {whose}' if whose else ''})"
