"""Processes that used the CPU and then stopped using it: whether a signal stopped them, or what they sleep in.

A stopped process (state T) is in no sample, in no load average and in no list of blocked tasks, and neither is a worker
that sleeps for ever on a lock or a socket: nothing else here sees them. So whoever had LEAST_SAMPLES and is not in the
samples any more is looked at: /proc/PID/stat, and of workers of a GPU's process (its children) also the function that
they sleep in. Looks become rarer while nothing is found; a stopped process is looked at every second until it goes on.

Cost: 15 us a look, at most MOST_LOOKS a second, none while the busy stay busy. Who sent the signal is not known to the
kernel afterwards, so it is not recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from zombiescope.kernel import blocked_task, process
from zombiescope.kernel.process import ProcessStat
from zombiescope.recorder.sample_writer import TaskShare
from zombiescope.store import schema
from zombiescope.store.batch import Batch
from zombiescope.store.event import Event
from zombiescope.store.hangs import ASLEEP, STOPPED, SUSPENDED

KIND = "tasks_stopped"
LEAST_SAMPLES = 10
"""A tenth of a second of CPU: it did some work."""
QUIET_US = 1_500_000
"""Shares are those of a second."""
FORGET_US = 60_000_000
PAUSE_US = 10_000_000
"""Whoever did nothing for so long begins anew."""
MOST_PROCESSES = 4096
MOST_LOOKS = 64
MOST_ROWS = 64
YOUNG_US, ROW_US = 15_000_000, 5_000_000
"""A row a second while it is new, then one every five."""
TOLD_US = 5_000_000
MOST_PARENTS = 8
STATE_STOPPED = "T"
"""Not "t": that is a debugger."""
SLEEPS = "S"


@dataclass(slots=True)
class Busy:
    """A process that was in the samples."""

    samples: int
    last_us: int
    look_us: int
    looked_us: int = 0
    """When it was last seen not to be stopped."""


@dataclass(slots=True)
class Quiet:
    """One that was found stopped, or asleep."""

    stat: ProcessStat
    kind: str
    parent: str
    since_us: int
    row_us: int = 0
    told: bool = False


class QuietProcesses:
    def __init__(self, batch: Batch, root: str = "/") -> None:
        self.tell: Callable[[Event], None] = lambda _: None
        self.suspect: Callable[[int, str], None] = lambda _at, _what: None
        self._batch = batch
        self._root = root
        self._is_live = root == "/"
        self._busy: dict[int, Busy] = {}
        self._quiet: dict[int, Quiet] = {}
        self._least = LEAST_SAMPLES

    def hot(self, shares: Iterable[TaskShare], now_us: int) -> None:
        """What tasks had of the CPU in the last second."""
        for share in shares:
            if not share.pid or not share.samples:
                continue
            self._quiet.pop(share.pid, None)
            known = self._busy.pop(share.pid, None)
            before = known.samples if known is not None and now_us - known.last_us < PAUSE_US else 0
            samples = share.samples + before
            self._busy[share.pid] = Busy(samples, now_us, now_us + QUIET_US)  # whoever was seen last goes last
        while len(self._busy) > MOST_PROCESSES:
            del self._busy[next(iter(self._busy))]

    def second(self, now_us: int, on_gpu: Collection[int] = (), ranks: Collection[int] = ()) -> None:
        if not self._is_live:
            return
        self._least = 1 if ranks else LEAST_SAMPLES  # what feeds a rank may use little
        for pid in list(self._quiet):
            self._look_again(pid, now_us)
        for pid in self._due(now_us):
            self._look(pid, now_us, on_gpu)
        self._write(now_us)
        self._report(now_us)

    # --- looking -----------------------------------------------------------------------------------------------------

    def _due(self, now_us: int) -> list[int]:
        for pid, busy in list(self._busy.items()):
            if now_us - busy.last_us <= FORGET_US:
                break
            if pid not in self._quiet:
                del self._busy[pid]
        least = 1 if self._quiet else self._least  # where one was stopped its like may have been, too
        due = (pid for pid, one in self._busy.items() if one.look_us <= now_us and one.samples >= least)
        return sorted((pid for pid in due if pid not in self._quiet), key=lambda pid: -self._busy[pid].samples)[
            :MOST_LOOKS
        ]

    def _look(self, pid: int, now_us: int, on_gpu: Collection[int]) -> None:
        busy = self._busy[pid]
        stat = process.read_stat(pid, self._root)
        if stat is None or stat.is_kernel_thread:
            del self._busy[pid]
            return
        since_us = max(busy.last_us, busy.looked_us)
        if stat.state == STATE_STOPPED:
            self._quiet[pid] = Quiet(stat, self._stopped_by(stat), self._named(stat.ppid), since_us)
        elif stat.state == SLEEPS and stat.ppid in on_gpu and not self._is_busy(stat.ppid, now_us):
            self._quiet[pid] = Quiet(stat, ASLEEP, self._named(stat.ppid), busy.last_us)
        else:
            busy.looked_us = now_us
            busy.look_us = now_us + (now_us - busy.last_us) // 2

    def _look_again(self, pid: int, now_us: int) -> None:
        quiet = self._quiet[pid]
        stat = process.read_stat(pid, self._root)
        wanted = SLEEPS if quiet.kind == ASLEEP else STATE_STOPPED
        if stat is None or stat.start_time_ticks != quiet.stat.start_time_ticks or stat.state != wanted:
            del self._quiet[pid]
            if pid in self._busy:
                self._busy[pid].looked_us, self._busy[pid].look_us = now_us, now_us + QUIET_US

    def _is_busy(self, pid: int, now_us: int) -> bool:
        known = self._busy.get(pid)
        return known is not None and now_us - known.last_us < QUIET_US

    def _stopped_by(self, stat: ProcessStat) -> str:
        """Control-Z in a terminal stops all of a job, up to the child of the shell, which is a process group."""
        for _ in range(MOST_PARENTS):
            parent = process.read_stat(stat.ppid, self._root)
            if parent is None or parent.state != STATE_STOPPED:
                in_terminal = bool(stat.terminal) and parent is not None
                is_job = in_terminal and parent is not None and stat.process_group != parent.process_group
                return SUSPENDED if is_job else STOPPED
            stat = parent
        return STOPPED

    def _named(self, pid: int) -> str:
        stat = process.read_stat(pid, self._root)
        return f"{stat.comm if stat else '?'}:{pid}"

    # --- what was found ----------------------------------------------------------------------------------------------

    def _write(self, now_us: int) -> None:
        due = [one for one in self._quiet.values() if now_us - one.row_us >= self._row_every_us(one, now_us)]
        for one in due[:MOST_ROWS]:
            one.row_us = now_us
            self._batch.add(schema.WAITING, self._row(one, now_us))

    def _row_every_us(self, one: Quiet, now_us: int) -> int:
        return 0 if now_us - one.since_us < YOUNG_US else ROW_US

    def _row(self, one: Quiet, now_us: int) -> tuple[object, ...]:
        pid, is_asleep = one.stat.pid, one.kind == ASLEEP
        wchan = blocked_task.wchan(f"{self._root}/proc/{pid}/task/{pid}") if is_asleep else None
        alike = sum(other.parent == one.parent and other.kind == one.kind for other in self._quiet.values())
        known = {"time": now_us, "since": one.since_us, "pid": pid, "tid": pid, "comm": one.stat.comm,
                 "state": SLEEPS if is_asleep else STATE_STOPPED, "wchan": wchan, "kind": one.kind,
                 "resource": one.parent, "alike": alike, "kernel_thread": 0}  # fmt: skip
        return tuple(known.get(name) for name in schema.WAITING.names)

    def _report(self, now_us: int) -> None:
        """Those that were stopped for a while: an event for each parent; and the live diagnosis looks at them."""
        for parent, alike in self._lasting(now_us):
            self.suspect(now_us, f"stopped {parent}")
            news = [one for one in alike if not one.told and one.kind != ASLEEP]
            if news:
                for one in alike:
                    one.told = True
                self.tell(_event(now_us, parent, news))

    def _lasting(self, now_us: int) -> Iterator[tuple[str, list[Quiet]]]:
        groups: dict[str, list[Quiet]] = {}
        for one in self._quiet.values():
            if now_us - one.since_us >= TOLD_US and one.kind != SUSPENDED:
                groups.setdefault(one.parent, []).append(one)
        yield from groups.items()


def _event(now_us: int, parent: str, stopped: list[Quiet]) -> Event:
    since_us, count = min(one.since_us for one in stopped), len(stopped)
    names = ", ".join(sorted({one.stat.comm for one in stopped})[:4])
    who = f"{count} processes ({names}) of {parent} are" if count > 1 else f"{names}, a child of {parent}, is"
    text = f"{who} stopped by a signal for {(now_us - since_us) / 1e6:.0f} s; who sent it is not recorded"
    fields = {"tasks": count, "pids": [one.stat.pid for one in stopped][:16], "parent": parent, "since_us": since_us}
    return Event(now_us, KIND, "recorder", "info", text, fields)
