"""Python read from outside: what it costs, how it compares with py-spy, and whether the observed program notices.

    python -m benchmarks.python [--seconds 60] [--threads 64] [--pairs 20]      these rows alone, without `make bench`

py-spy is the one on PATH or $PY_SPY; without it that comparison is left out and said to be.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.table import Row
from zombiescope.recorder.python_pace import MOST_FAST
from zombiescope.recorder.python_process import PythonProcess

THREADS = 64
A_PROCESS = 16
SETTLED_S = 5.0
"""Not counted: loading it, and naming what is new."""
HERTZ = os.sysconf("SC_CLK_TCK")

MANY = """
import os, sys, threading, time
def busy(n):
    total = 0
    for i in range(n):
        total += i * i
    return total
def deep(n):
    return deep(n - 1) if n else busy(20000)
def works():
    while True:
        deep(20)
        time.sleep(0.002)
waits = threading.Event()
def waiter(n):
    return waiter(n - 1) if n else waits.wait()
for _ in range(int(sys.argv[1]) - 1):
    threading.Thread(target=waiter, args=(20,), daemon=True).start()
os.write(1, b'1')
works()
"""
"""One thread works at a depth of twenty calls, the others wait at that depth."""

SHARES = """
import os, time
def decode(n=3000):
    total = 0
    for i in range(n):
        total += i
    return total
def resize(n=1800):
    total = 0
    for i in range(n):
        total += i
    return total
def collate(n=1200):
    total = 0
    for i in range(n):
        total += i
    return total
os.write(1, b'1')
while True:
    decode(); resize(); collate()
"""

WORK = """
import sys, time
def step(n):
    total = 0
    for i in range(n):
        total += i
    return total
def epoch(steps):
    for _ in range(steps):
        step(500)
for line in sys.stdin:
    began, cpu = time.perf_counter(), time.process_time()
    epoch(int(line))
    print(time.perf_counter() - began, time.process_time() - cpu, flush=True)
"""


def measure(seconds: float, threads: int = THREADS, pairs: int = 20) -> list[Row]:
    return [*_cost(seconds, threads), *_beside_py_spy(seconds), *_slowdown(pairs)]


# --- what it costs ---------------------------------------------------------------------------------------------------


def _cost(seconds: float, threads: int) -> list[Row]:
    processes = max(1, threads // A_PROCESS)
    with _started(MANY, processes, str(threads // processes)) as pids, _Reader() as reader:
        fast = [[pid, pid] for pid in pids][:MOST_FAST]
        reader.turn(pids, fast, SETTLED_S)
        before_s, looks = reader.cpu_s(), reader.looks
        reader.turn(pids, fast, seconds)
        used = (reader.cpu_s() - before_s) / seconds
        said = reader.last
    note = f"{processes} processes, {len(fast)} threads ten times a second, the others once; "
    note += f"goal: 1%; it looked {said['slower']} times more rarely to keep to its budget"
    torn = f"{said['torn']} of {said['walks']:,} walks were torn; {reader.looks - looks:,} looks"
    return [
        Row(
            f"CPU of the reader, {threads} Python threads on {os.cpu_count()} cores",
            f"{used * 100:.2f}% of one core",
            note,
        ),
        Row("memory of the reader", f"{said['rss_bytes'] / 1e6:.0f} MB", torn),
    ]


# --- against py-spy --------------------------------------------------------------------------------------------------


def _beside_py_spy(seconds: float) -> list[Row]:
    with _started(SHARES, 1) as (pid,), _Reader() as reader:
        reader.turn([pid], [[pid, pid]], SETTLED_S)
        before_s = reader.cpu_s()
        reader.functions.clear()
        spy = _PySpy(pid, seconds)
        reader.turn([pid], [[pid, pid]], seconds)
        ours, used_s = reader.functions, reader.cpu_s() - before_s
        theirs, spied_s = spy.result()
    if not theirs:
        return [Row("top functions against py-spy", "not compared", "py-spy is not installed: $PY_SPY names it")]
    all_ours, all_theirs = sum(ours.values()), sum(theirs.values())
    names = [name for name, _ in theirs.most_common(5)]
    far = max(abs(ours[name] / all_ours - theirs[name] / all_theirs) for name in names)
    shares = ", ".join(f"{name} {ours[name] / all_ours:.1%} / {theirs[name] / all_theirs:.1%}" for name in names)
    return [
        Row(
            "top functions against py-spy --nonblocking at 100 Hz",
            f"{far * 100:.1f} points apart",
            f"{shares}; goal: 5",
        ),
        Row(
            "CPU for that, of one core",
            f"{used_s / seconds:.2%}",
            f"py-spy {spied_s / seconds:.2%}; {all_ours} looks against {all_theirs}",
        ),
    ]


class _PySpy:
    def __init__(self, pid: int, seconds: float) -> None:
        self._out = Path(tempfile.mkdtemp()) / "raw"
        program = os.environ.get("PY_SPY") or shutil.which("py-spy")
        self._process = None
        if program:
            command = [program, "record", "--nonblocking", "--rate", "100", "--duration", str(int(seconds)), "--format",
                       "raw", "--function", "-o", str(self._out), "--pid", str(pid)]  # fmt: skip
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def result(self) -> tuple[Counter[str], float]:
        if self._process is None:
            return Counter(), 0.0
        _, _, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = 0
        found: Counter[str] = Counter()
        for line in self._out.read_text().splitlines() if self._out.exists() else ():
            stack, _, count = line.rpartition(" ")
            found[stack.rpartition(";")[2].partition(" (")[0]] += int(count)
        shutil.rmtree(self._out.parent)
        return found, usage.ru_utime + usage.ru_stime


# --- whether the program notices -------------------------------------------------------------------------------------


def _slowdown(pairs: int) -> list[Row]:
    """The same work with and without being looked at, in turns; which comes first changes."""
    program = subprocess.Popen([sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdin is not None
    assert program.stdout is not None

    def work(steps: int) -> tuple[float, float]:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(f"{steps}\n")
        program.stdin.flush()
        wall_s, cpu_s = program.stdout.readline().split()
        return float(wall_s), float(cpu_s)

    try:
        steps = max(100, int(2000 / work(2000)[1]))
        with _Reader() as reader:
            reader.turn([program.pid], [[program.pid, program.pid]], SETTLED_S)
            changes = [_pair(work, steps, reader, program.pid, first=bool(number % 2)) for number in range(pairs)]
    finally:
        program.kill()
        program.communicate()
    rows = []
    for number, what in enumerate(("CPU time", "wall time")):
        values = [change[1 - number] for change in changes]
        mean, half = statistics.fmean(values), 2.1 * statistics.stdev(values) / math.sqrt(len(values))
        note = f"95% confidence, {pairs} pairs of about a second; looked at ten times a second"
        rows.append(Row(f"more {what} of a program that is looked at", f"{mean:+.2%} ± {half:.2%}", note))
    return rows


def _pair(work: Any, steps: int, reader: _Reader, pid: int, *, first: bool) -> tuple[float, float]:
    """By how much the looked-at run took longer: wall time, CPU time."""
    found = {}
    for looked_at in (first, not first):
        reader.tell([pid] if looked_at else [os.getpid()], [[pid, pid]] if looked_at else [])
        time.sleep(0.2)
        found[looked_at] = work(steps)
        reader.listen()
    return found[True][0] / found[False][0] - 1, found[True][1] / found[False][1] - 1


# --- the reader ------------------------------------------------------------------------------------------------------


class _Reader:
    """The real process, told and listened to as the recorder does."""

    def __init__(self) -> None:
        self._process = PythonProcess()
        self._names: list[str] = []
        self._stacks: list[list[int]] = []
        self.functions: Counter[str] = Counter()
        self.looks = 0
        self.last: dict[str, Any] = {}

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    def tell(self, pids: list[int], fast: list[list[int]]) -> None:
        self._process.tell(time.time_ns() // 1000, {"pids": pids, "fast": fast})

    def turn(self, pids: list[int], fast: list[list[int]], seconds: float) -> None:
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            self.tell(pids, fast)
            time.sleep(min(1.0, max(0.0, end_s - time.monotonic())))
            self.listen()

    def listen(self) -> None:
        for said in self._process.listen():
            self.last = said
            if said["new"]:
                self._names, self._stacks = [], []
            self._names += [name for name, _ in said["functions"]]
            self._stacks += said["stacks"]
            for row in said["rows"]:
                self.looks += row[2]
                self.functions[self._names[self._stacks[row[5]][-1]]] += row[2]

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_bytes().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / HERTZ


@contextmanager
def _started(script: str, copies: int, *arguments: str) -> Iterator[list[int]]:
    processes = [
        subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE) for _ in range(copies)
    ]
    try:
        for each in processes:
            assert each.stdout is not None
            each.stdout.read(1)
        yield [each.pid for each in processes]
    finally:
        for each in processes:
            each.kill()
            each.communicate()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--pairs", type=int, default=20)
    options = parser.parse_args()
    for row in measure(options.seconds, options.threads, options.pairs):
        print(json.dumps({"what": row.name, "measured": row.value, "note": row.note}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
