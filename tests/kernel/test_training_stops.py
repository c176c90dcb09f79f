"""A real program with eight real workers that are stopped with SIGSTOP, on a stand-in for a GPU and without one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.nvml_stand_in import StandIn
from tests.helpers.recorder_process import recording

from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.store.reader import open_recording

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(240)]

WORKERS = 8
PROGRAM = r"""
import os, sys, time
def work(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        sum(range(1000))
def worker(asked, made):
    open("/proc/self/comm", "w").write("pt_data_worker")
    while os.read(asked, 1):
        work(0.006)
        os.write(made, b"x")
pipes = []
for _ in range(int(sys.argv[1])):
    (asked, ask), (batches, made) = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        os.close(ask)
        for _, other, _ in pipes:
            os.close(other)
        worker(asked, made)
        os._exit(0)
    os.close(asked)
    os.write(ask, b"xx")
    pipes.append((pid, ask, batches))
def next_batch(number):
    _, ask, batches = pipes[number % len(pipes)]
    os.read(batches, 1)
    os.write(ask, b"x")
def train():
    number = 0
    while True:
        next_batch(number)
        work(0.004)
        time.sleep(0.01)
        number += 1
print(*(pid for pid, _, _ in pipes), flush=True)
train()
"""
USUAL_S, STOPPED_S = 28.0, 14.0
LONGEST_S = 90.0


class Job:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.pid = process.pid
        self.workers = [int(word) for word in process.stdout.readline().split()]

    def works(self, seconds: float) -> None:
        """Returns when each of them has used so much CPU."""
        end = time.monotonic() + LONGEST_S
        while min(_used_s(pid) for pid in (self.pid, *self.workers)) < seconds:
            assert time.monotonic() < end, "this machine is too busy"
            time.sleep(0.2)

    def signal(self, number: signal.Signals) -> None:
        for pid in self.workers:
            os.kill(pid, number)


def _used_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    process = subprocess.Popen([sys.executable, str(program), str(WORKERS)], stdout=subprocess.PIPE, text=True)
    made = Job(process)
    yield made
    made.signal(signal.SIGKILL)
    process.kill()
    process.communicate()


def of(place: Path) -> Diagnosis:
    with open_recording(place) as opened:
        return diagnose(opened, opened.start_us, opened.end_us + 1)


def causes(found: Diagnosis) -> list[tuple[str, str]]:
    return [(one.causes[0].pattern, one.causes[0].summary) for one in found.incidents if one.causes]


@pytest.mark.long
def test_a_gpu_whose_workers_are_stopped(job: Job, tmp_path: Path) -> None:
    driver = StandIn(tmp_path)
    uses = f"process 0 {job.pid} 1073741824"
    driver.script("util 0 53", uses)
    with recording(tmp_path / "rec", gpu_library=str(driver.place)) as recorder:
        time.sleep(USUAL_S)
        job.signal(signal.SIGSTOP)
        driver.script("util 0 0", uses)
        time.sleep(STOPPED_S)
        job.signal(signal.SIGCONT)
        driver.script("util 0 53", uses)
        time.sleep(6.0)
        recorder.stop()
    mine = [summary for pattern, summary in causes(of(tmp_path / "rec")) if pattern == "workers-stopped"]
    assert len(mine) == 1, "and the same is not reported of the workers again"
    assert mine[0].startswith("GPU 0 idle for ")
    assert f"(before: 53%): train.py (pid {job.pid}) " in mine[0]
    assert mine[0].endswith("; its 8 workers are stopped by a signal (SIGSTOP)")


def test_workers_that_are_stopped_without_a_gpu(job: Job, tmp_path: Path) -> None:
    with recording(tmp_path / "rec") as recorder:
        recorder.wait_for_frames(2)
        job.works(0.5)
        job.signal(signal.SIGSTOP)
        recorder.wait_for_frames(11)
        job.signal(signal.SIGCONT)
        recorder.wait_for_frames(2)
        recorder.stop()
    found = [summary for pattern, summary in causes(of(tmp_path / "rec")) if pattern == "workers-stopped"]
    (summary,) = found
    assert summary.startswith("8 workers (pt_data_worker) of python")
    assert f"(pid {job.pid}) were stopped by a signal for " in summary
