"""The process that reads Python stacks out of other processes; the recorder tells it whom, and writes what it says.

    python -m zombiescope.recorder.python_reader

    it reads   {"fast": [[pid, tid], ...], "pids": [pid, ...]}      once a second: whom to look at, and whom often
    it writes  {"functions": [...], "stacks": [...], "rows": [...], ...}      once a second, one line

It reads memory and never stops or changes anybody. It has CAP_SYS_PTRACE and no other capability, and starts no program
and opens no socket. Processes, threads, depth, bytes and CPU time are bounded (python_pace.py, symbols/python/walk.py).
It ends when its input does.

A row is [first look, last look, looks, pid, tid, stack, lines, state, comm]: looks in a row that saw the same. Times
are of CLOCK_MONOTONIC, in microseconds. Functions and stacks are numbered when they are first said; "new" says that
numbers begin again.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from zombiescope.base import helper as _helper
from zombiescope.base.confinement import confine
from zombiescope.kernel.process import printable
from zombiescope.recorder import reader_pipe
from zombiescope.recorder.python_pace import MOST_FAST, MOST_PROCESSES, Pace
from zombiescope.recorder.python_process import said_by_reader
from zombiescope.recorder.python_target import Target, Task
from zombiescope.recorder.stack_numbers import MOST_NUMBERS, StackNumbers
from zombiescope.symbols.python.walk import Stack, Tally

CAP_SYS_PTRACE = 19
MOST_THREADS = 256
"""Of all processes together, in a second."""
HELD_US, FAST_HELD_US = 5_000_000, 900_000
"""A row that goes on is said after this; one of a thread that is looked at often, each second."""
NEAR_US = 150_000
"""Looks further apart than this are not one row, unless nothing moved for whole seconds."""
SAY_S = 1.0


@dataclass(slots=True)
class Run:
    """Looks in a row at one thread that saw the same."""

    first_us: int
    last_us: int
    looks: int
    stack: Stack
    task: Task | None


class PythonReader:
    def __init__(self) -> None:
        self.pace = Pace()
        self._tally = Tally()
        self._targets: dict[int, Target] = {}
        self._fast: list[tuple[int, int]] = []
        self._runs: dict[tuple[int, int], Run] = {}
        self._numbers: StackNumbers[tuple[str, str]] = StackNumbers()
        self._numbered: dict[Stack, tuple[int, list[int]]] = {}
        """A stack with its lines -> its number, and the lines; most are seen again and again."""
        self._done: list[tuple[int, int, Run]] = []
        self._fast_s = self._slow_s = self._say_s = 0.0
        self._cpu_s, self._spent_at_s = time.process_time(), time.monotonic()
        self._left_out = 0
        self._word = said_by_reader()
        self._ranks: dict[int, int] = {}
        """Process -> when it started, of those that were said to be ranks of a job."""

    # --- whom ---------------------------------------------------------------------------------------------------------

    def follow(self, said: Any) -> None:
        """Whom to look at from now on."""
        if not isinstance(said, dict):
            return
        pids = [pid for pid in said.get("pids") or () if isinstance(pid, int) and pid > 0]
        self._left_out = max(0, len(pids) - MOST_PROCESSES)
        self._targets = {pid: self._targets.get(pid) or Target(pid, self._tally) for pid in pids[:MOST_PROCESSES]}
        self._fast = [
            (pair[0], pair[1])
            for pair in said.get("fast") or ()
            if isinstance(pair, list) and len(pair) == 2 and pair[0] in self._targets
        ][:MOST_FAST]

    # --- looking ------------------------------------------------------------------------------------------------------

    def turn(self, now_s: float) -> dict[str, Any] | None:
        """Whatever is due; what is to be said, if anything is."""
        if now_s >= self._slow_s:
            self._slow_s = now_s + self.pace.slow_s
            self._fast_s = now_s + self.pace.fast_s
            self._look_at_all(now_s)
        elif now_s >= self._fast_s:
            self._fast_s = max(self._fast_s + self.pace.fast_s, now_s)
            self._look_at_few(now_s)
        if now_s < self._say_s:
            return None
        self._say_s = max(self._say_s + SAY_S, now_s)
        return self._message(now_s)

    def _look_at_all(self, now_s: float) -> None:
        left = MOST_THREADS
        for target in self._targets.values():
            self._reads(target.pid)
            if not target.find(now_s):
                continue
            tids = target.threads(now_s)[:left]
            left -= len(tids)
            for tid, stack in target.look(tids, now_s).items():
                task = target.task(tid)
                if task is not None:  # a child that was just forked still lists the threads of its parent
                    self._saw(target.pid, tid, stack, task)
        self._reads(0)

    def _reads(self, pid: int) -> None:
        """Says whom it is about to read: that process may keep it waiting (python_process.py)."""
        if self._word is not None:
            self._word[:8] = pid.to_bytes(8, sys.byteorder)

    def _look_at_few(self, now_s: float) -> None:
        for pid, tid in self._fast:
            target = self._targets[pid]
            self._reads(pid)
            for _, stack in target.look((tid,), now_s).items():
                # Whether a main thread waits or computes tells what its job or its GPU waits for.
                self._saw(pid, tid, stack, target.task(tid) if target.rank or pid == tid else None)
        self._reads(0)

    def _saw(self, pid: int, tid: int, stack: Stack, task: Task | None) -> None:
        at_us = time.monotonic_ns() // 1000
        run = self._runs.get((pid, tid))
        if run is not None and run.stack == stack and self._goes_on(run, at_us) and _alike(run.task, task):
            run.last_us, run.looks, run.task = at_us, run.looks + 1, task or run.task
            return
        if run is not None:
            self._done.append((pid, tid, run))
            task = task or run.task
        self._runs[pid, tid] = Run(at_us, at_us, 1, stack, task)

    def _goes_on(self, run: Run, at_us: int) -> bool:
        """Looks of one kind only, so that a reader of the row knows how near to each other they were."""
        gap_us, before_us = at_us - run.last_us, (run.last_us - run.first_us) / max(1, run.looks - 1)
        return run.looks == 1 or (gap_us <= NEAR_US) == (before_us <= NEAR_US)

    def wait_s(self, now_s: float) -> float:
        due_s = min(self._slow_s, self._say_s) if not self._fast else min(self._fast_s, self._slow_s, self._say_s)
        return max(0.0, due_s - now_s) if self._targets else SAY_S

    # --- saying -------------------------------------------------------------------------------------------------------

    def _message(self, now_s: float) -> dict[str, Any]:
        now_us = time.monotonic_ns() // 1000
        fast = set(self._fast)
        for who, run in list(self._runs.items()):
            if (
                now_us - run.first_us >= (FAST_HELD_US if who in fast else HELD_US)
                or now_us - run.last_us > 2 * self.pace.slow_s * 1e6
            ):
                self._done.append((*who, self._runs.pop(who)))
        rows = []
        for pid, tid, run in self._done:
            if run.stack.frames and (numbered := self._number(run.stack)) is not None:
                number, lines = numbered
                task = run.task or Task("", "")
                rows.append([run.first_us, run.last_us, run.looks, pid, tid, number, lines,
                             task.state or None, task.comm or None])  # fmt: skip
        self._done.clear()
        cpu_s = time.process_time()
        self.pace.spent(cpu_s - self._cpu_s, now_s - self._spent_at_s)
        self._cpu_s, self._spent_at_s = cpu_s, now_s
        return {
            **self._said_of_stacks(),
            "rows": rows,
            "ranks": self._new_ranks(),
            "left": [[target.pid, target.why] for target in self._targets.values() if target.why],
            "minors": sorted({target.minor for target in self._targets.values() if target.minor is not None}),
            "walks": self._tally.walks,
            "torn": self._tally.torn,
            "slower": round(self.pace.slower, 2),
            "left_out": self._left_out,
            "cpu_us": int(cpu_s * 1e6),
            "rss_bytes": reader_pipe.rss_bytes(),
        }

    def _new_ranks(self) -> list[dict[str, Any]]:
        """Each once."""
        living = {pid: target.rank for pid, target in self._targets.items() if target.rank is not None}
        new = [rank for pid, rank in living.items() if self._ranks.get(pid) != rank["start_ticks"]]
        self._ranks = {pid: rank["start_ticks"] for pid, rank in living.items()}
        return new

    def _number(self, stack: Stack) -> tuple[int, list[int]] | None:
        """Its number and its lines."""
        known = self._numbered.get(stack)
        if known is None:
            number = self._numbers.of([(frame.name, frame.file) for frame in stack.frames])
            if number is None:
                return None
            if len(self._numbered) >= MOST_NUMBERS:
                self._numbered.clear()
            known = self._numbered[stack] = number, [frame.line for frame in stack.frames]
        return known

    def _said_of_stacks(self) -> dict[str, Any]:
        said = self._numbers.take()
        said["functions"] = [(_shown(name), _shown(file)) for name, file in said["functions"]]
        if self._numbers.is_new:
            self._numbered.clear()
        return said


def _alike(before: Task | None, now: Task | None) -> bool:
    """Looks of a rank that saw it waiting and computing are two rows."""
    return before is None or now is None or before.state == now.state


def _shown(text: str) -> str:
    """Of a name that somebody else chose: printable, and nothing that UTF-8 cannot write."""
    return printable(text.encode("utf-8", "replace"))


def main(_: Iterable[str] = ()) -> int:
    confine(keep=(CAP_SYS_PTRACE,), allow=("process_vm_readv",))
    with suppress(BrokenPipeError, KeyboardInterrupt):
        reader_pipe.run(PythonReader())
    return 0


if __name__ == "__main__":
    _helper.begin()
    sys.exit(main())
