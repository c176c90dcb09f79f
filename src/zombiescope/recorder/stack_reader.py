"""The process that unwinds copies of stacks; the recorder tells it of whom, and writes what it says.

    python -m zombiescope.recorder.stack_reader

    it reads   {"threads": [[pid, tid], ...], "asleep": [[pid, tid], ...]}      once a second: the threads that are
               hottest in user mode, and main threads of a training that wait
    it writes  {"functions": [...], "stacks": [...], "rows": [...], ...}      once a second, one line

Compilers leave out frame pointers, so the kernel's own walk ends after a frame or two in most libraries. Of a few
threads the kernel is asked for a copy of the stack (PERF_SAMPLE_STACK_USER), HZ times for each second that they run:
16 kB at first, more where that was not enough, and then more rarely, so that a thread costs at most BYTES_PER_S.
Threads whose stacks are whole without it are left alone for a while. What all of it costs is measured and bounded.

A thread that waits is in no sample. Where it went into the kernel is in /proc/PID/task/TID/syscall (blocked_task.py);
its stack is read from /proc/PID/mem and unwound from there, without stopping it, and is believed if it was still in the
same place afterwards. Of the other registers none is known, which ends a walk early where a function keeps its frame in
rbp and nothing below it saved that.

It has the capabilities that sampling and reading the files of other programs need, starts no program and opens no
socket. It ends when its input does. A row is [time, pid, tid, stack, why it ended]; times are of CLOCK_MONOTONIC, in
microseconds. Functions and stacks are numbered when they are first said; "new" says that numbers begin again.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any

from zombiescope._native import StackCopies
from zombiescope.base import helper as _helper
from zombiescope.base.confinement import confine
from zombiescope.kernel import blocked_task
from zombiescope.recorder import reader_pipe
from zombiescope.recorder.stack_numbers import StackNumbers
from zombiescope.recorder.stack_thread import MOST_ROWS, MOST_THREADS, CopiedThread
from zombiescope.symbols.frame import Frame
from zombiescope.symbols.frame_tables import CopiedStacks, FrameTables
from zombiescope.symbols.resolver import UserSymbols, live_symbols

CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON = 2, 19, 21, 38
ALLOWED = 0.01
"""Of a core; beyond it threads are let go, the coolest first."""
DRAIN_S = 0.25
SAY_S = 1.0
WHOLE_FOR_S = 300.0
NAMED_FOR_S = 30.0
MOST_NAMED = 20_000
_MEMORY_S = 10.0
MOST_ASLEEP = 8
ASLEEP_BYTES = 60 << 10
ASLEEP_KEPT_S = 30.0


class StackReader:
    def __init__(self) -> None:
        self._tables = FrameTables()
        self._names: UserSymbols = live_symbols()
        self._copies = StackCopies(MOST_THREADS)
        self._threads: dict[tuple[int, int], CopiedThread] = {}
        self._processes: dict[int, CopiedStacks] = {}
        self._asleep: dict[int, float] = {}
        """Processes with a thread that waited -> until when what is known of them is kept."""
        self._whole: dict[tuple[int, int], float] = {}
        """Threads whose stacks need no copies -> until when that is believed."""
        self._named: dict[int, dict[int, Frame | None]] = {}
        """Process -> what its addresses are, for as long as its stacks are copied and no longer than NAMED_FOR_S."""
        self._forget_s = time.monotonic() + NAMED_FOR_S
        self._numbers: StackNumbers[Frame] = StackNumbers()
        self._rows: list[list[Any]] = []
        self._most = MOST_THREADS
        self._used = 0.0
        self._say_s = 0.0
        self._cpu_s, self._at_s = time.process_time(), time.monotonic()
        self._why: str | None = None
        self.copies = self.copied_bytes = 0

    # --- whom ---------------------------------------------------------------------------------------------------------

    def follow(self, said: Any) -> None:
        """Whose stacks are copied from now on."""
        if not isinstance(said, dict):
            return
        now_s = time.monotonic()
        pairs = [tuple(pair) for pair in said.get("threads") or () if _is_thread(pair)]
        self._whole = {who: until_s for who, until_s in self._whole.items() if until_s > now_s}
        wanted = [who for who in pairs if who not in self._whole][: self._most]
        for who in [who for who in self._threads if who not in wanted]:
            self._leave(who)
        for who in wanted:
            if who not in self._threads:
                self._begin(*who)
        self._look_at_sleepers([tuple(pair) for pair in said.get("asleep") or () if _is_thread(pair)], now_s)
        kept = {pid for pid, _ in self._threads} | self._asleep.keys()
        for pid in [pid for pid in self._processes if pid not in kept]:
            self._processes.pop(pid).close()
            self._names.forget(pid)
            self._named.pop(pid, None)
        if now_s >= self._forget_s:  # code may have been mapped anew, or compiled
            self._forget_s = now_s + NAMED_FOR_S
            self._named.clear()

    def _begin(self, pid: int, tid: int) -> None:
        slot = next((at for at in range(MOST_THREADS) if at not in {one.slot for one in self._threads.values()}), None)
        if slot is None:
            return
        try:
            if pid not in self._processes:
                self._processes[pid] = CopiedStacks(pid, self._tables)
            self._threads[pid, tid] = CopiedThread(pid, tid, slot, self._copies)
            self._why = None
        except ProcessLookupError:
            return
        except OSError as error:
            self._why = error.strerror or "unknown"

    def _look_at_sleepers(self, pairs: list[tuple[int, int]], now_s: float) -> None:
        self._asleep = {pid: until_s for pid, until_s in self._asleep.items() if until_s > now_s}
        for pid, tid in pairs[:MOST_ASLEEP]:
            with suppress(ProcessLookupError, OSError):
                if pid not in self._processes:
                    self._processes[pid] = CopiedStacks(pid, self._tables)
                self._asleep[pid] = now_s + ASLEEP_KEPT_S
                self._look_at_sleeper(pid, tid)

    def _look_at_sleeper(self, pid: int, tid: int) -> None:
        place = f"/proc/{pid}/task/{tid}"
        at = blocked_task.user_place(place)
        if at is None or len(self._rows) >= MOST_ROWS:
            return
        sp, ip = at
        descriptor = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            stack = os.pread(descriptor, ASLEEP_BYTES, sp)
        finally:
            os.close(descriptor)
        if blocked_task.user_place(place) == at:
            chain, why = self._processes[pid].unwind(ip, sp, 0, stack)
            self._add(time.monotonic_ns(), pid, tid, chain, why)

    def _leave(self, who: tuple[int, int]) -> None:
        self._threads.pop(who).close()

    # --- copies -------------------------------------------------------------------------------------------------------

    def turn(self, now_s: float) -> dict[str, Any] | None:
        """Takes what was copied; what is to be said, if it is time."""
        self._copies.drain()
        for slot, at_ns, pid, tid, ip, sp, bp, stack, by_frame_pointer in self._copies.take():
            thread = self._threads.get((pid, tid))
            if thread is not None and thread.slot == slot:
                self._unwind(thread, at_ns, ip, sp, bp, stack, by_frame_pointer)
        for who, thread in list(self._threads.items()):
            if thread.is_whole:
                self._whole[who] = now_s + WHOLE_FOR_S
                self._leave(who)
            else:
                thread.adapt()
        if now_s < self._say_s:
            return None
        self._say_s = now_s + SAY_S
        return self._message(now_s)

    def _unwind(
        self, thread: CopiedThread, at_ns: int, ip: int, sp: int, bp: int, stack: bytes, by_frame_pointer: int
    ) -> None:
        self.copies += 1
        self.copied_bytes += len(stack)
        process = self._processes.get(thread.pid)
        if process is None or len(self._rows) >= MOST_ROWS:
            return
        try:
            chain, why = process.unwind(ip, sp, bp, stack)
        except (ProcessLookupError, PermissionError):
            return
        thread.saw(len(chain), by_frame_pointer, why)
        self._add(at_ns, thread.pid, thread.tid, chain, why)

    def _add(self, at_ns: int, pid: int, tid: int, chain: list[int], why: str) -> None:
        frames = self._frames(pid, chain) if chain else []
        if frames and (number := self._numbers.of(frames[::-1])) is not None:
            self._rows.append([at_ns // 1000, pid, tid, number, why])

    def _frames(self, pid: int, chain: list[int]) -> list[Frame]:
        """Names of a chain: all but the first are return addresses, and looked up inside of the call."""
        addresses = [chain[0], *(address - 1 for address in chain[1:])]
        named = self._named.setdefault(pid, {})
        if len(named) > MOST_NAMED:
            named.clear()
        unknown = [address for address in addresses if address not in named]
        if unknown:
            named.update(zip(unknown, self._names.resolve_at(pid, unknown), strict=False))
        return [frame for address in addresses if (frame := named.get(address)) is not None]

    # --- saying -------------------------------------------------------------------------------------------------------

    def _message(self, now_s: float) -> dict[str, Any]:
        cpu_s, wall_s = time.process_time(), now_s - self._at_s
        if wall_s > 0:
            weight = min(1.0, wall_s / _MEMORY_S)
            self._used += weight * ((cpu_s - self._cpu_s) / wall_s - self._used)
        self._cpu_s, self._at_s = cpu_s, now_s
        if self._used > ALLOWED:
            self._most = max(1, self._most - 1)
        elif self._used < ALLOWED / 2:
            self._most = min(MOST_THREADS, self._most + 1)
        rows, self._rows = self._rows, []
        return {
            **self._numbers.take(),
            "rows": rows,
            "why": self._why,
            "threads": len(self._threads),
            "whole": len(self._whole),
            "copies": self.copies,
            "bytes": self.copied_bytes,
            "lost": self._copies.lost,
            "tables_bytes": self._tables.nbytes,
            "cpu_us": int(cpu_s * 1e6),
            "rss_bytes": reader_pipe.rss_bytes(),
        }

    def wait_s(self, _: float) -> float:
        return DRAIN_S

    def close(self) -> None:
        for who in list(self._threads):
            self._leave(who)


def _is_thread(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, int) and one > 0 for one in pair)


def main() -> None:
    confine(keep=(CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON), allow=("perf_event_open",))
    with suppress(BrokenPipeError, KeyboardInterrupt):
        reader_pipe.run(StackReader())


if __name__ == "__main__":
    _helper.begin()
    main()
