"""What wide nodes cost: the rtnl lock with many cards, 20,000 threads, and 50,000 lines of the kernel log a second.

    unshare --net python -m benchmarks field

Cards are veth pairs in the network namespace that this process is in. Threads are those of one process, which is read
for each of them, as the recorder does for a thread that it sampled. Log lines are records as /dev/kmsg has them.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.table import Row
from zombiescope.kernel import process
from zombiescope.kernel.ethtool import Ethtool
from zombiescope.kernel.kmsg import KmsgRecord
from zombiescope.recorder import kernel_log, lookup
from zombiescope.recorder.clock import WallClock
from zombiescope.recorder.kernel_log import KernelLog
from zombiescope.recorder.lookup import KnownProcesses
from zombiescope.recorder.nic import EVERY_S, LONGEST_S, RTNL_SHARE
from zombiescope.recorder.sources import Sources

READS = 300
"""Each may take a millisecond; the sum is that of all threads."""
THREADS = """
import sys, threading
threading.stack_size(65536)
stop = threading.Event()
for _ in range(int(sys.argv[1])):
    threading.Thread(target=stop.wait, daemon=True).start()
print("ready", flush=True)
stop.wait()
"""


def measure(seconds: float, cards: int = 256, threads: int = 20_000, lines: int = 50_000) -> list[Row]:
    return [*rtnl(cards), *many_threads(threads), *log_lines(lines, min(seconds, 10.0))]


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


# --- the rtnl lock ---------------------------------------------------------------------------------------------------


def rtnl(cards: int) -> Iterator[Row]:
    """How long each ethtool call takes; it holds the lock while the driver answers."""
    for pair in range(cards // 2):
        command = ("ip", "link", "add", f"zb{pair}a", "type", "veth", "peer", "name", f"zb{pair}b")
        subprocess.run(command, check=True)
    names = [f"zb{pair}{end}" for pair in range(cards // 2) for end in "ab"]
    try:
        asked, took = Ethtool(), list[float]()
        for name in names * 3:
            began = time.perf_counter()
            asked.statistics(name)
            took.append(time.perf_counter() - began)
        once_s = sum(took) / 3
    finally:
        for pair in range(cards // 2):
            subprocess.run(("ip", "link", "del", f"zb{pair}a"), check=False)
    pause_s = min(LONGEST_S, max(EVERY_S, once_s / RTNL_SHARE))
    yield Row(
        f"ethtool -S of {len(names)} virtual cards, once",
        f"{once_s * 1000:.1f} ms",
        f"{once_s / cards * 1e6:.0f} us each",
    )
    yield Row("part of the time in such calls, every second", f"{once_s * 100:.2f}%")
    yield Row(
        f"the same as it is read (every {pause_s:.0f} s)", f"{once_s / pause_s * 100:.3f}%", f"goal: {RTNL_SHARE:.1%}"
    )


# --- threads ---------------------------------------------------------------------------------------------------------


@contextmanager
def _process_of(threads: int) -> Iterator[tuple[int, int]]:
    command = [sys.executable, "-c", THREADS, str(threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            yield child.pid, sum(1 for _ in Path(f"/proc/{child.pid}/task").iterdir())
        finally:
            child.kill()


def many_threads(count: int) -> Iterator[Row]:
    """CPU of asking about each thread once, as at the beginning of a segment: without what is known, and with it."""
    with _process_of(count) as (pid, there):
        time.sleep(lookup.SETTLED_S + 0.5)  # a young process is read whole each time
        known = KnownProcesses("/")
        whole = known.read(pid)
        assert whole is not None
        ways = (
            ("whole", process.read, READS), ("checked each time", lambda _: process.read_again(whole, "/"), READS),
            ("checked once a second", known.read, there),
        )  # fmt: skip
        for what, read, times in ways:
            before = _cpu_s()
            for _ in range(times):
                read(pid)
            each_s = (_cpu_s() - before) / times
            name = f"a process of {there:,} threads, {what}, for each of them"
            yield Row(name, f"{each_s * there:.2f} s CPU", f"{each_s * 1e6:.0f} us each, of {times:,}")


# --- the kernel's log ------------------------------------------------------------------------------------------------


class _Flood:
    """Records as fast as they are read, `per_second` at most; what is not read in time is overwritten."""

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._began_s = time.monotonic()
        self._taken = 0
        self.read_count = 0

    def read(self, limit: int = 500) -> tuple[list[KmsgRecord], int]:
        there = int((time.monotonic() - self._began_s) * self._per_second)
        lost = max(0, there - self._taken - 5_000)  # a log of 512 kB holds about so many
        self._taken += lost
        count = min(limit, there - self._taken)
        text = "pcieport 0000:00:01.0: AER: Corrected error message received from 0000:01:00.0"
        found = [KmsgRecord(4, 0, self._taken + each, 1, text) for each in range(count)]
        self._taken += count
        self.read_count += count
        return found, lost


def log_lines(per_second: int, seconds: float) -> Iterator[Row]:
    for budget in (None, kernel_log.RECORDS_PER_S):
        kernel_log.RECORDS_PER_S = per_second * 2 if budget is None else budget
        log, flood = KernelLog(WallClock(), Sources(), None, 0), _Flood(per_second)
        log.close()
        log._kmsg = flood  # type: ignore[assignment]
        log._time_us = lambda _: 0  # type: ignore[assignment, method-assign]
        if budget is not None:
            log._left = 0.0  # the burst is over
        before, end = _cpu_s(), time.monotonic() + seconds
        while time.monotonic() < end:
            log.read()
            log.held_back()
            threading.Event().wait(0.001)
        share = (_cpu_s() - before) / seconds
        what = "without a budget" if budget is None else f"with the budget of {budget:,} a second"
        read = f"{flood.read_count / seconds:,.0f} lines a second read"
        yield Row(f"{per_second:,} lines of the kernel log a second, {what}", f"{share * 100:.1f}% of a core", read)
