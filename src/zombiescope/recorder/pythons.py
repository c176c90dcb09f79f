"""What Python was doing, on its way into the recording: whom to look at, and rows of what was seen.

Looked at are processes that are hot (in the samples), that wait (waits.py), that are on a GPU, or that are ranks of a
distributed job (below), and siblings of such a rank, which may use no CPU at all while they wait; each for KEPT_US
after the last reason. The hottest threads, and the main threads of ranks
and of processes on a GPU, are looked at ten times a second; all other threads of those processes once. Reading is the
reader's (python_reader.py), whose words are checked here: it reads what other people's programs wrote.

A source that cannot be read at all (no capability, yama) is missing and said with its remedy; interpreters that are
left alone are said once.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from zombiescope._native import Sampler
from zombiescope.kernel import process
from zombiescope.kernel.procfile import read_text
from zombiescope.recorder.python_pace import MOST_FAST, MOST_PROCESSES
from zombiescope.recorder.python_process import PythonProcess
from zombiescope.recorder.python_target import DENIED
from zombiescope.recorder.sample_writer import TaskShare
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.stack_numbers import MOST_REMEMBERED, are_known, packed
from zombiescope.store import schema
from zombiescope.store.batch import Batch
from zombiescope.store.event import Event
from zombiescope.symbols.python import places

SOURCE = "python stacks"
KIND = "python"
KEPT_US = 60_000_000
HOT_SAMPLES = 5
"""In a second: a twentieth of a core."""
FAST_SAMPLES = 20
MOST_WAITING = 16
MOST_SIBLINGS = 64
MOST_MAINS = 8
"""Main threads of ranks and of processes on a GPU that are looked at ten times a second."""
MOST_HOT = 8
MOST_ROWS = 4096
MOST_DEPTH = 512
NEW_FRAMES = 20_000
"""Of one segment: names that programs make up must not fill a recording. Ranks and processes on a GPU have as many of
their own, so that a neighbour with many stacks does not hide what they do."""
OLDEST_US = 9_000_000
IDLE_US = 60_000_000
_LEVEL = "/proc/sys/kernel/yama/ptrace_scope"


class PythonTracker:
    """`wall_us`: from the monotonic clock, in ns, to Unix time."""

    def __init__(
        self, batch: Batch, sources: Sources, sampler: Sampler, wall_us: Callable[[int], int], *, enabled: bool = True
    ) -> None:
        self.process = PythonProcess()
        self.ranks = RankTracker(batch)
        self.tell: Callable[[Event], None] = lambda _: None
        self._batch = batch
        self._sources = sources
        self._sampler = sampler
        self._wall_us = wall_us
        self._enabled = enabled
        if not enabled:
            self.process.pulse.is_off("switched off (--no-python)")
        self._reasons: dict[int, int] = {}
        """Process -> when there was last a reason to look at it."""
        self._heat: dict[tuple[int, int], int] = {}
        self._functions: list[tuple[str, str]] = []
        self._stacks: list[array[int]] = []
        self._numbers: dict[int, int] = {}
        """The reader's number of a stack -> its number in this segment."""
        self._purposes: dict[int, bool] = {}
        """The reader's number of a stack -> whether it waits for other ranks."""
        self._first: list[int] = []
        self._mains: frozenset[int] = frozenset()
        self._asleep: dict[int, bool] = {}
        """Main process -> whether its main thread waited at the newest look."""
        self._frames_left = {True: NEW_FRAMES, False: NEW_FRAMES}
        """Of the main processes, and of all others."""
        self._said: set[str] = set()
        self._used_us = 0
        self.walks = self.torn = 0

    # --- whom ---------------------------------------------------------------------------------------------------------

    def hot(self, shares: Iterable[TaskShare], now_us: int) -> None:
        """What tasks had of the CPU in the last second."""
        self._heat = {}
        for share in shares:
            if share.samples >= HOT_SAMPLES and share.pid:
                self._reasons[share.pid] = now_us
                self._heat[share.pid, share.tid] = share.samples

    def _whom(self, now_us: int, waiting: Iterable[int], on_gpu: Iterable[int]) -> dict[str, Any]:
        mains = list(dict.fromkeys([*self.ranks.pids, *on_gpu]))
        for pid in [*list(dict.fromkeys(waiting))[:MOST_WAITING], *mains]:
            self._reasons[pid] = now_us
        self._reasons = {pid: at_us for pid, at_us in self._reasons.items() if now_us - at_us < KEPT_US}
        self._first, self._mains = mains, frozenset(mains)
        self._asleep = {pid: waits for pid, waits in self._asleep.items() if pid in self._mains}
        # Ranks and those on a GPU first, then the hottest, then whoever was last.
        heat: dict[int, int] = {}
        for (pid, _), samples in self._heat.items():
            heat[pid] = heat.get(pid, 0) + samples
        first, left_out = set(mains), self.process.left_out(now_us)
        pids = sorted(
            self._reasons.keys() - left_out, key=lambda pid: (pid not in first, -heat.get(pid, 0), -self._reasons[pid])
        )
        hottest = sorted(self._heat, key=lambda who: -self._heat[who])
        fast = [who for who in hottest if self._heat[who] >= FAST_SAMPLES][:MOST_HOT]
        chosen = list(dict.fromkeys([*((pid, pid) for pid in mains[:MOST_MAINS]), *fast]))
        chosen = [who for who in chosen if who[0] not in left_out]
        return {"pids": pids[: 2 * MOST_PROCESSES], "fast": chosen[:MOST_FAST]}

    def second(self, now_us: int, waiting: Iterable[int] = (), on_gpu: Iterable[int] = ()) -> None:
        """Listens, and says whom to look at next. Raises OSError."""
        if not self._enabled:
            return
        for said in self.process.listen():
            self._understand(said, now_us)
        self.ranks.second(now_us)
        whom = self._whom(now_us, waiting, on_gpu)
        if whom["pids"]:
            self._used_us = now_us
            self.process.tell(now_us, whom)
        elif now_us - self._used_us > IDLE_US:
            self.process.let_go()

    @property
    def asleep(self) -> list[tuple[int, int]]:
        """Main threads of ranks and of processes on a GPU that wait, those of ranks first."""
        return [(pid, pid) for pid in self._first if self._asleep.get(pid)][:MOST_MAINS]

    # --- what ---------------------------------------------------------------------------------------------------------

    def _understand(self, said: dict[str, Any], now_us: int) -> None:
        if said.get("new"):
            self._functions, self._stacks, self._numbers, self._purposes = [], [], {}, {}
        self._functions += [
            (str(name)[:500], places.known_path(str(file)[:500])) for name, file in said.get("functions") or ()
        ]
        self._stacks += [packed(stack, MOST_DEPTH) for stack in said.get("stacks") or ()]
        del self._functions[MOST_REMEMBERED:], self._stacks[MOST_REMEMBERED:]
        rows = [row for row in (said.get("rows") or ())[:MOST_ROWS] if len(row) == 9]
        self._batch.extend(schema.PYTHON, [made for row in rows if (made := self._row(row, now_us)) is not None])
        for rank in (said.get("ranks") or ())[:MOST_PROCESSES]:
            if isinstance(rank, dict):
                self.ranks.found(rank, now_us)
                self._look_at_siblings(rank, now_us)
        self.walks, self.torn = int(said.get("walks") or 0), int(said.get("torn") or 0)
        self._note(said, now_us)

    def _look_at_siblings(self, rank: dict[str, Any], now_us: int) -> None:
        """Ranks that wait for others, or that hang since before the recorder began, are in no sample."""
        parent = rank.get("ppid")
        if type(parent) is int and parent > 1:
            for pid in process.children(parent)[:MOST_SIBLINGS]:
                self._reasons.setdefault(pid, now_us)

    def _row(self, row: list[Any], now_us: int) -> tuple[Any, ...] | None:
        first, last, looks, pid, tid, number, lines, state, comm = row
        from_us, to_us = self._wall_us(first * 1000), self._wall_us(last * 1000)
        stack = self._stack(number, pid in self._mains)
        if pid == tid and pid in self._mains:
            self.ranks.looked(pid, looks, waits=state in ("S", "D") and self._waits_for_ranks(number))
            self._asleep[pid] = state != "R"
        if stack is None or not now_us - OLDEST_US <= from_us <= now_us + OLDEST_US:
            return None
        return from_us, to_us, looks, pid, tid, comm, state, stack, lines

    def _stack(self, number: int, is_main: bool) -> int | None:
        known = self._numbers.get(number)
        if known is None and 0 <= number < len(self._stacks):
            frames = self._stacks[number]
            if len(frames) > self._frames_left[is_main] or not are_known(frames, len(self._functions)):
                return None
            self._frames_left[is_main] -= len(frames)
            rows = self._sampler.rows
            ids = [rows.frame(*self._functions[each], KIND) for each in frames]
            known = self._numbers[number] = rows.stacks.intern(ids)
        return known

    def _waits_for_ranks(self, number: int) -> bool:
        known = self._purposes.get(number)
        if known is None and 0 <= number < len(self._stacks):
            frames = [self._functions[each] for each in self._stacks[number] if 0 <= each < len(self._functions)]
            known = self._purposes[number] = places.purpose_of(tuple(frames)) in ("collective", "backward")
        return bool(known)

    def _note(self, said: dict[str, Any], now_us: int) -> None:
        left = [(int(pid), str(why)) for pid, why in said.get("left") or ()]
        denied = [pid for pid, why in left if why == DENIED]
        if denied and not said.get("minors"):
            self._sources.lacks(SOURCE, f"the memory of pid {denied[0]} may not be read", _grant(), now_us)
        else:
            self._sources.has(SOURCE, now_us)
        for pid, why in left:
            if why != DENIED and why not in self._said and len(self._said) < MOST_PROCESSES:
                self._said.add(why)
                text = f"pid {pid} is {why}: its Python functions are not shown"
                self.tell(Event(now_us, "python_unread", "recorder", "info", text, {"pid": pid, "why": why}))

    def restart(self, now_us: int) -> None:
        """A new segment numbers its stacks from one again, and says which ranks live."""
        self._numbers.clear()
        self.ranks.restart(now_us)
        self._frames_left = {True: NEW_FRAMES, False: NEW_FRAMES}


def _grant() -> str:
    if read_text(_LEVEL) == "3":
        return "kernel.yama.ptrace_scope below 3, which takes a reboot"
    return "AmbientCapabilities=CAP_SYS_PTRACE in its unit, or run it as root"


# --- ranks ------------------------------------------------------------------------------------------------------------
# Processes of distributed jobs in the recording: rows of `ranks`, when one is first seen and when it ends.
#
# Who is a rank is found by the reader of Python stacks (python_reader.py), which may hang and is not the loop. Here its
# words are checked and kept; once in AGAIN_US each known process is looked at by its start time (15 us), at most MOST
# of them. Every segment says the living again.
#
# Once a second, where the ranks of a job wait for each other while one of them does not, or where all of them do
# nothing but wait, the live diagnosis has something to look at (`suspect`). It is only a suspicion: who is late is
# judged by query/late_ranks.py, from the recording.

MOST = 64
LATE_LESS = 0.15
"""Of the looks: so much less than the others a late rank waits."""
LATE_S = 4
HANG_S = 20
AGAIN_US = 2_000_000
_MOST_TEXT = 4096
_NAMES = schema.RANKS.names
_NUMBERS = {column.name for column in schema.RANKS.columns if column.kind == "int"}


class RankTracker:
    def __init__(self, batch: Batch, root: str = "/") -> None:
        self._batch = batch
        self._root = root
        self._known: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._look_us = 0
        self.suspect: Callable[[int, str], None] = lambda _at, _what: None
        self._looks: dict[int, list[int]] = {}
        """Process -> looks since the last second, and those that saw it waiting for other ranks."""
        self._in_a_row: dict[str, int] = {}

    def found(self, said: dict[str, Any], now_us: int) -> None:
        """The reader saw a process of a job."""
        row = tuple(_cell(name, said.get(name)) for name in _NAMES[1:-1])
        pid, start_ticks = row[0], row[1]
        if pid is None or start_ticks is None or (pid, start_ticks) in self._known or len(self._known) >= MOST:
            return
        self._known[pid, start_ticks] = row
        self._batch.add(schema.RANKS, (now_us, *row, 0))

    def looked(self, pid: int, looks: int, *, waits: bool) -> None:
        """At the main thread of a rank: whether it waited for others."""
        known = self._looks.setdefault(pid, [0, 0])
        known[0] += looks
        known[1] += looks if waits else 0

    def second(self, now_us: int) -> None:
        self._suspect(now_us)
        if now_us - self._look_us < AGAIN_US:
            return
        self._look_us = now_us
        for (pid, start_ticks), row in list(self._known.items()):
            stat = process.read_stat(pid, self._root)
            if stat is None or stat.start_time_ticks != start_ticks or stat.state in "ZX":
                del self._known[pid, start_ticks]
                self._batch.add(schema.RANKS, (now_us, *row, 1))

    def _suspect(self, now_us: int) -> None:
        looks, self._looks = self._looks, {}
        found = dict(self._suspicions(looks))
        self._in_a_row = {what: self._in_a_row.get(what, 0) + 1 for what in found}
        for what, least_s in found.items():
            if self._in_a_row[what] >= least_s:
                self.suspect(now_us, what)

    def _suspicions(self, looks: dict[int, list[int]]) -> Iterator[tuple[str, int]]:
        """(what is suspicious in this second, how many seconds in a row make it so)."""
        job, kind = _NAMES.index("job") - 1, _NAMES.index("kind") - 1
        groups: dict[str, dict[int, float]] = {}
        for (pid, _), row in self._known.items():
            if looks.get(pid, (0, 0))[0]:
                groups.setdefault(f"{row[kind]} {row[job]}", {})[pid] = looks[pid][1] / looks[pid][0]
        for name, waits in groups.items():
            if len(waits) < 2:
                continue
            least, *others = sorted(waits.values())
            if others[0] - least >= LATE_LESS:
                late = min(waits, key=lambda pid: waits[pid])
                yield f"late rank {late}", LATE_S
            elif least >= 1:
                yield f"ranks of {name}", HANG_S

    @property
    def pids(self) -> list[int]:
        """The living ones, those with a rank first."""
        rank = _NAMES.index("rank") - 1
        ordered = sorted(self._known.items(), key=lambda each: (each[1][rank] is None, each[1][rank] or 0))
        return [pid for (pid, _), _ in ordered]

    def restart(self, now_us: int) -> None:
        """A new segment says who is there."""
        for row in self._known.values():
            self._batch.add(schema.RANKS, (now_us, *row, 0))


def _cell(name: str, value: Any) -> Any:
    if name in _NUMBERS:
        return value if type(value) is int and 0 <= value < 1 << 53 else None
    return value[:_MOST_TEXT] if isinstance(value, str) else None
