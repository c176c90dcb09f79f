"""Whole stacks on their way into the recording: whose stacks are copied, and rows of what was unwound.

Copied are the stacks of the few threads that were hottest in user mode in the last second, and, every ASLEEP_S, of main
threads of a training that wait (pythons.py): where in native code they wait is in no sample. Unwinding is the reader's
(stack_reader.py), whose words are checked here: it reads files and memory of other people's programs. Where it may not
follow a thread that is said as a missing source; the kernel's own walks, by frame pointers, stay as they are.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterable
from typing import Any

from zombiescope._native import UNWOUND, Sampler
from zombiescope.recorder.python_process import WHOLE_STACKS, PythonProcess
from zombiescope.recorder.sample_writer import TaskShare
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.stack_numbers import MOST_REMEMBERED, are_known, packed
from zombiescope.recorder.stack_thread import MOST_ROWS, MOST_THREADS
from zombiescope.store import schema
from zombiescope.store.batch import Batch

SOURCE = "whole stacks"
MODULE = "zombiescope.recorder.stack_reader"
HOT_SAMPLES = 20
"""Outside of the kernel, in a second: a fifth of a core."""
KEPT_S = 3
"""A thread is followed for so many seconds after it was hot."""
MOST_DEPTH = 300
NEW_FRAMES = 20_000
"""Of one segment: names that programs make up must not fill a recording."""
OLDEST_US = 9_000_000
IDLE_US = 60_000_000
ASLEEP_S = 2
MACHINE = "x86_64"
KINDS = ("user", "vdso", "jit", "unknown")
MARKS = dict(zip(UNWOUND[1:], (
    "[stack copy ended]", "[no unwind table]", "[stack is not code]", "[stack contradicts itself]", "[stack too deep]",
), strict=True))  # fmt: skip
"""What stands for the frames that are missing; import says it in the same words (native/perf_unwind.pxi)."""


class WholeStacks:
    """`wall_us`: from the monotonic clock, in ns, to Unix time."""

    def __init__(
        self, batch: Batch, sources: Sources, sampler: Sampler, wall_us: Callable[[int], int], *, enabled: bool = True
    ) -> None:
        self.process = PythonProcess(MODULE, WHOLE_STACKS)
        self._batch = batch
        self._sources = sources
        self._sampler = sampler
        self._wall_us = wall_us
        self._enabled = enabled and os.uname().machine == MACHINE
        if not self._enabled:
            self.process.pulse.is_off(f"switched off (--no-whole-stacks), or the machine is not {MACHINE}")
        self._hot: dict[tuple[int, int], int] = {}
        """Thread -> for how many seconds it is still followed, the hottest first."""
        self._functions: list[tuple[str, str, str]] = []
        self._stacks: list[array[int]] = []
        self._numbers: dict[tuple[int, str], int] = {}
        self._frames_left = NEW_FRAMES
        self._used_us = 0
        self._turn = 0

    def hot(self, shares: Iterable[TaskShare]) -> None:
        """What tasks had of the CPU in the last second."""
        heat = {(one.pid, one.tid): one.samples - one.kernel for one in shares if one.pid and one.tid}
        hottest = sorted((who for who, samples in heat.items() if samples >= HOT_SAMPLES), key=lambda who: -heat[who])
        followed = dict.fromkeys(hottest, KEPT_S)
        for who, left in self._hot.items():
            if who not in followed and left > 1:
                followed[who] = left - 1
        self._hot = dict(list(followed.items())[: 2 * MOST_THREADS])

    def second(self, now_us: int, asleep: Iterable[tuple[int, int]] = ()) -> None:
        """Listens, and says whom to follow next. Raises OSError."""
        if not self._enabled:
            return
        for said in self.process.listen():
            self._understand(said, now_us)
        self._turn = (self._turn + 1) % ASLEEP_S
        sleepers = [] if self._turn else list(asleep)
        if self._hot or sleepers:
            self._used_us = now_us
            self.process.tell(now_us, {"threads": list(self._hot), "asleep": sleepers})
        elif now_us - self._used_us > IDLE_US:
            self.process.let_go()

    def _understand(self, said: dict[str, Any], now_us: int) -> None:
        if said.get("new"):
            self._functions, self._stacks, self._numbers = [], [], {}
        self._functions += [
            (str(name)[:500], str(module)[:200], kind if kind in KINDS else "unknown")
            for name, module, kind in said.get("functions") or ()
        ]
        self._stacks += [packed(stack, MOST_DEPTH) for stack in said.get("stacks") or ()]
        del self._functions[MOST_REMEMBERED:], self._stacks[MOST_REMEMBERED:]
        rows = [self._row(row, now_us) for row in (said.get("rows") or ())[:MOST_ROWS] if len(row) == 5]
        self._batch.extend(schema.WHOLE_STACKS, [row for row in rows if row is not None])
        why = said.get("why")
        if why:
            self._sources.lacks(SOURCE, f"a thread may not be followed: {str(why)[:100]}", _grant(), now_us)
        else:
            self._sources.has(SOURCE, now_us)

    def _row(self, row: list[Any], now_us: int) -> tuple[Any, ...] | None:
        at, pid, tid, number, ended = row
        time_us = self._wall_us(at * 1000)
        stack = self._stack(number, ended)
        if stack is None or not now_us - OLDEST_US <= time_us <= now_us + OLDEST_US:
            return None
        return time_us, pid, tid, stack, ended

    def _stack(self, number: int, ended: str) -> int | None:
        """Its number in this segment."""
        known = self._numbers.get((number, ended))
        if known is None and 0 <= number < len(self._stacks) and ended in UNWOUND:
            frames = self._stacks[number]
            if len(frames) > self._frames_left or not are_known(frames, len(self._functions)):
                return None
            self._frames_left -= len(frames)
            rows = self._sampler.rows
            ids = [rows.frame(*self._functions[each]) for each in frames]
            if ended in MARKS:
                ids.insert(0, rows.frame(MARKS[ended], "", "unknown"))
            known = self._numbers[number, ended] = rows.stacks.intern(ids)
        return known

    def restart(self) -> None:
        """A new segment numbers its stacks anew."""
        self._numbers.clear()
        self._frames_left = NEW_FRAMES


def _grant() -> str:
    return "AmbientCapabilities=CAP_PERFMON CAP_SYS_PTRACE in its unit, and LimitMEMLOCK=8M; or run it as root"
