"""A real recorder beside a real Python program: its functions and lines are in the recording and on its samples."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.recorder_process import RecorderProcess, recording

from zombiescope.query.python import PythonThread, threads
from zombiescope.query.selection import Filters, Selection
from zombiescope.store.reader import open_recording

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(180)]

LONGEST_S = 60.0
WORKS = """
import os, threading
def decode(n):
    total = 0
    for i in range(n):
        total += i
    return total
def waits_for_a_batch(event):
    event.wait()
threading.Thread(target=waits_for_a_batch, args=(threading.Event(),), daemon=True).start()
os.write(1, b"1")
while True:
    decode(5000)
"""


@pytest.fixture
def working() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", WORKS], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(1)
    yield process.pid
    process.kill()
    process.communicate()


def seen(recorder: RecorderProcess, pid: int) -> list[PythonThread]:
    with open_recording(recorder.node_dir.parent) as opened:
        return [each for each in threads(opened, opened.start_us, opened.end_us + 1) if each.pid == pid]


def until_seen(recorder: RecorderProcess, pid: int, looks: int) -> None:
    end_s = time.monotonic() + LONGEST_S
    while sum(each.looks >= (looks if each.tid == pid else 2) for each in seen(recorder, pid)) < 2:
        assert time.monotonic() < end_s, "it was never looked at"
        time.sleep(0.5)


def test_a_program_that_nobody_prepared(working: int, tmp_path: Path) -> None:
    with recording(tmp_path / "rec", segment_s=5.0) as recorder:
        until_seen(recorder, working, looks=8)
        found = {each.tid: each for each in seen(recorder, working)}
        result = recorder.stop()
    assert result["python_walks"] >= 8
    assert result["python_torn"] <= result["python_walks"] / 2
    assert 0 < result["python_reader_cpu_seconds"] < result["seconds"]
    main = found.pop(working)
    assert {frames[-1].name for frames in main.stacks()} <= {"<module>", "decode"}
    assert {frame.line for frames in main.stacks() for frame in frames if frame.name == "decode"} <= {3, 4, 5, 6, 7}
    (waiter,) = found.values()
    assert any(frame.name == "waits_for_a_batch" for frames in waiter.stacks() for frame in frames)
    assert waiter.waiting_ratio == 1.0
    with open_recording(tmp_path / "rec") as opened:
        mine = frozenset({working})
        span = (opened.start_us, opened.end_us + 1)
        joined = Selection(opened, *span, Filters(pids=mine, python=True))
        counts, known = joined.counts(), joined.stacks
        names = {function.name for row in counts.nonzero()[0].tolist() for function in known.of(row)}
        assert {"<module>", "decode"} <= names
        assert int(counts.sum()) >= 3
        assert not any(name.startswith("_PyEval_EvalFrameDefault") for name in names)


def test_it_can_be_left_off(working: int, tmp_path: Path) -> None:
    with recording(tmp_path / "rec", python=False) as recorder:
        recorder.wait_for_frames(6)
        result = recorder.stop()
    assert result["python_reader_cpu_seconds"] == 0
    with open_recording(tmp_path / "rec") as opened:
        assert len(opened.table("python")) == 0
