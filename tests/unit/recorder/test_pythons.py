"""Python stacks on their way into a recording: the real reader beside a real program, and what it must not be told."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from zombiescope._native import KernelSymbols, Sampler
from zombiescope.recorder.python_pace import ALLOWED, FAST_S, SLOW_S, Pace
from zombiescope.recorder.python_process import LEFT_OUT_US, PythonProcess
from zombiescope.recorder.python_reader import PythonReader
from zombiescope.recorder.python_target import DENIED
from zombiescope.recorder.pythons import KEPT_US, SOURCE, PythonTracker
from zombiescope.recorder.sample_writer import TaskShare
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.stack_numbers import MOST_NUMBERS
from zombiescope.store import schema
from zombiescope.store.batch import Batch
from zombiescope.store.event import Event
from zombiescope.symbols.python.walk import Frame, Stack

NOW_US = 1_760_000_000_000_000
SPINS = "import os\ndef spins():\n    while True:\n        sum(range(1000))\nos.write(1, b'1')\nspins()\n"


@pytest.fixture
def spinning() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", SPINS], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(1)
    yield process.pid
    process.kill()
    process.communicate()


class Rows(Batch):
    def of(self, table: schema.Table) -> list[dict[str, Any]]:
        return [dict(zip(table.names, row, strict=True)) for row in self._rows.get(table.number, [])]


@pytest.fixture
def batch() -> Rows:
    return Rows()


@pytest.fixture
def tracker(batch: Rows) -> Iterator[PythonTracker]:
    sampler = Sampler(KernelSymbols(), 1)
    made = PythonTracker(batch, Sources(), sampler, lambda ns: NOW_US + ns // 1000)
    yield made
    made.process.stop()


def message(**more: Any) -> dict[str, Any]:
    said = {
        "new": True,
        "functions": [["main", "/srv/job/train.py"], ["Queue.get", "/usr/lib/python3.11/queue.py"]],
        "stacks": [[0, 1]],
        "rows": [[0, 900_000, 2, 70, 71, 0, [12, 171], "S", "worker"]],
        "minors": [11], "walks": 9, "torn": 1,
    }  # fmt: skip
    return said | more


def test_rows_become_stacks_of_frames_and_lines(tracker: PythonTracker, batch: Rows) -> None:
    tracker._understand(message(), NOW_US)
    (row,) = batch.of(schema.PYTHON)
    assert (row["time"], row["until"], row["looks"]) == (NOW_US, NOW_US + 900_000, 2)
    assert (row["pid"], row["tid"], row["comm"], row["state"], row["lines"]) == (70, 71, "worker", "S", [12, 171])
    frames = tracker._sampler.rows.take_frames()
    assert [frame[1:] for frame in frames] == [
        ("main", "job/train.py", "python"),
        ("Queue.get", "python3.11/queue.py", "python"),
    ]
    assert (tracker.walks, tracker.torn) == (9, 1)


@pytest.mark.parametrize(
    "forged",
    [
        {"stacks": [[0, 7]]}, {"stacks": [[-1]]}, {"rows": [[0, 0, 1, 70, 71, 5, [1], "S", "x"]]},
        {"rows": [[0, 0, 1, 70, 71, -1, [1], "S", "x"]]}, {"rows": [[1, 2]]}, {"stacks": []},
        {"rows": [[10**12, 10**12, 1, 70, 71, 0, [1], "S", "x"]]},
    ],
)  # fmt: skip
def test_what_a_reader_that_was_taken_over_says_is_checked(
    tracker: PythonTracker, batch: Rows, forged: dict[str, Any]
) -> None:
    tracker._understand(message(**forged), NOW_US)
    assert batch.of(schema.PYTHON) == []


def test_a_segment_numbers_its_stacks_anew(tracker: PythonTracker, batch: Rows) -> None:
    tracker._understand(message(), NOW_US)
    tracker._sampler.next_segment()
    tracker.restart(NOW_US)
    tracker._understand(message(new=False, functions=[], stacks=[]), NOW_US)
    assert len(tracker._sampler.rows.take_frames()) == 2
    assert len(batch.of(schema.PYTHON)) == 2


def test_made_up_names_do_not_fill_a_segment(tracker: PythonTracker, batch: Rows) -> None:
    for turn in range(60):
        functions = [[f"f{turn}_{number}", "x.py"] for number in range(500)]
        rows = [[0, 0, 1, 70, 71, 0, [1] * 500, "R", "x"]]
        tracker._understand(message(functions=functions, stacks=[list(range(500))], rows=rows), NOW_US)
    assert len(tracker._sampler.rows.take_frames()) <= 20_000
    assert 30 <= len(batch.of(schema.PYTHON)) <= 40


def test_whom_to_look_at(tracker: PythonTracker) -> None:
    shares = [TaskShare("a", None, 99, 0, pid=10, tid=11), TaskShare("b", None, 6, 0, pid=20, tid=20),
              TaskShare("c", None, 1, 0, pid=30, tid=30)]  # fmt: skip
    tracker.hot(shares, NOW_US)
    whom = tracker._whom(NOW_US, waiting=[40, 40], on_gpu=[50])
    assert whom == {"pids": [50, 10, 20, 40], "fast": [(50, 50), (10, 11)]}
    tracker.hot([], NOW_US + KEPT_US)
    assert tracker._whom(NOW_US + KEPT_US, (), ()) == {"pids": [], "fast": []}


def test_siblings_of_a_rank_are_looked_at_though_they_use_no_cpu(tracker: PythonTracker) -> None:
    # GIVEN three ranks of one launcher, that sleep, of which the reader has found one
    launcher = (
        "import subprocess, sys, time\nfor _ in range(3): print(subprocess.Popen(['sleep', '60']).pid, flush=True)"
    )
    started = subprocess.Popen([sys.executable, "-S", "-c", f"{launcher}\ntime.sleep(60)"], stdout=subprocess.PIPE)
    assert started.stdout is not None
    pids = [int(started.stdout.readline()) for _ in range(3)]
    try:
        rank = {"pid": pids[0], "start_ticks": 1, "rank": 0, "ppid": started.pid}
        tracker._understand(message(rows=[], ranks=[rank, {"pid": 1, "ppid": "x"}]), NOW_US)
        assert set(pids) <= set(tracker._whom(NOW_US, (), ())["pids"])
    finally:
        for pid in [*pids, started.pid]:
            os.kill(pid, 9)
        started.communicate()


def test_what_may_not_be_read_is_missing_and_what_is_left_alone_is_said_once(tracker: PythonTracker) -> None:
    told: list[Event] = []
    tracker.tell = told.append
    tracker._understand(message(left=[[70, DENIED]], minors=[]), NOW_US)
    (missing,) = tracker._sources.missing
    assert (missing.source, missing.why) == (SOURCE, "the memory of pid 70 may not be read")
    assert "CAP_SYS_PTRACE" in missing.grant
    for pid in (71, 72):
        tracker._understand(message(left=[[pid, "Python 3.13 without the GIL (free-threaded)"]]), NOW_US)
    assert tracker._sources.missing == []
    assert [event.text for event in told] == [
        "pid 71 is Python 3.13 without the GIL (free-threaded): its Python functions are not shown"
    ]


# --- the reader ------------------------------------------------------------------------------------------------------


def test_the_real_reader_reads_a_real_program(spinning: int) -> None:
    process = PythonProcess()
    found: list[dict[str, Any]] = []
    end_s = time.monotonic() + 30
    try:
        while not any(said["rows"] for said in found) and time.monotonic() < end_s:
            process.tell(0, {"pids": [spinning, os.getpid()], "fast": [[spinning, spinning]]})
            time.sleep(0.3)
            found += process.listen()
        status = Path(f"/proc/{process.pid}/status").read_text()
    finally:
        process.stop()
    functions = [name for said in found for name, _ in said["functions"]]
    assert "spins" in functions
    assert any(row[4] == spinning and row[6][-1] == 4 for said in found for row in said["rows"])
    assert "Seccomp:\t2" in status
    effective = int(next(line for line in status.splitlines() if line.startswith("CapEff")).split()[1], 16)
    assert effective in (0, 1 << 19)
    assert process.pid is None
    assert process.cpu_us > 0


def test_looks_in_a_row_that_saw_the_same_are_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    now_us = [0]
    monkeypatch.setattr("zombiescope.recorder.python_reader.time.monotonic_ns", lambda: now_us[0] * 1000)
    reader, waits = PythonReader(), Stack((Frame("wait", "x.py", 3),), False)
    for at_us in (0, 100_000, 200_000):
        now_us[0] = at_us
        reader._saw(1, 1, waits, None)
    now_us[0] = 300_000
    reader._saw(1, 1, Stack((Frame("wait", "x.py", 4),), False), None)
    now_us[0] = 6_000_000
    rows = reader._message(6.0)["rows"]
    assert [row[:5] for row in rows] == [[0, 200_000, 3, 1, 1], [300_000, 300_000, 1, 1, 1]]


def test_a_stack_has_its_number_and_lines_as_long_as_the_recorder_knows_them() -> None:
    reader = PythonReader()
    for turn in range(2 * MOST_NUMBERS):
        numbered = reader._number(Stack((Frame("f", "x.py", turn),), False))
        assert numbered == (0, [turn])
    assert len(reader._numbered) <= MOST_NUMBERS
    for turn in range(MOST_NUMBERS):
        reader._number(Stack((Frame(f"f{turn}", "x.py", 1),), False))
    reader._said_of_stacks()
    assert not reader._numbered
    assert reader._number(Stack((Frame("f7", "x.py", 1),), False)) == (0, [1])


def test_names_that_cannot_be_written_are_made_so() -> None:
    reader = PythonReader()
    reader._number(Stack((Frame("\udcff\x1b[31m", "\ud800", 1),), False))
    json.dumps(reader._said_of_stacks()["functions"], ensure_ascii=False).encode()


def test_what_it_costs_decides_how_often_it_looks() -> None:
    pace = Pace()
    assert (pace.fast_s, pace.slow_s) == (FAST_S, SLOW_S)
    for _ in range(60):
        pace.spent(4 * ALLOWED / pace.slower, 1.0)
    assert 3.5 <= pace.slower <= 4.5
    for _ in range(60):
        pace.spent(0.0, 1.0)
    assert pace.slower == 1.0


# --- one that keeps the reader waiting -------------------------------------------------------------------------------


def test_a_process_that_keeps_the_reader_waiting_is_left_out_and_the_others_are_seen_again() -> None:
    """A page of its memory may be a file of a FUSE daemon that never answers. Here a stand-in for the reader sleeps
    when it is about to read that process: what is tried is whom the recorder leaves out, and when."""
    process = PythonProcess()
    process._arguments = [
        sys.executable, "-S", "-c",
        "import mmap, os, sys, time\n"
        "word = mmap.mmap(int(os.environ['ZOMBIESCOPE_LOOKS_AT']), mmap.PAGESIZE)\n"
        "for line in sys.stdin:\n"
        "    if '4711' in line:\n"
        "        word[:8] = (4711).to_bytes(8, sys.byteorder)\n"
        "        time.sleep(600)\n"
        "    print('{\"rows\": []}', flush=True)\n",
    ]  # fmt: skip
    process.silent_s = process.blocked_s = 0.3
    try:
        process.tell(NOW_US, {"pids": [4711, 4712], "fast": []})
        end_s = time.monotonic() + 20
        while not process.left_out(NOW_US) and time.monotonic() < end_s:
            time.sleep(0.1)
            process.watch()
        assert process.left_out(NOW_US) == {4711}
        assert "pid 4711" in process.part().why
        # THEN it is started again at once, and answers
        while process.running and time.monotonic() < end_s:
            process.listen()
        process.tell(NOW_US + 1_000_000, {"pids": [4712], "fast": []})
        assert process.running
        while not (heard := process.listen()) and time.monotonic() < end_s:
            time.sleep(0.05)
        assert heard
        # AND it is looked at again when that time is over
        assert process.left_out(NOW_US + LEFT_OUT_US + 1) == frozenset()
    finally:
        process.stop()


def test_the_reader_says_whom_it_is_about_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = PythonReader()
    with mmap.mmap(-1, mmap.PAGESIZE) as word:
        reader._word = word
        said: list[int] = []
        reader.follow({"pids": [os.getpid()], "fast": []})
        target = reader._targets[os.getpid()]

        def find(*_: object) -> bool:
            said.append(int.from_bytes(word[:8], sys.byteorder))
            return False

        monkeypatch.setattr(type(target), "find", find)
        reader._look_at_all(0.0)
        assert said == [os.getpid()]
        assert word[:8] == bytes(8)


def test_whom_the_reader_leaves_out_is_not_asked_for(tracker: PythonTracker) -> None:
    tracker._reasons = {4711: NOW_US, 4712: NOW_US}
    tracker.process._left_out = {4711: NOW_US + 1}
    assert tracker._whom(NOW_US, (), ())["pids"] == [4712]
