"""mpstat and perf beside the recorder, on the same load: the figures must agree."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import recording

from zombiescope.query.cores import cores
from zombiescope.store.reader import open_recording

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

SECONDS = 12


USER = "sum(range(2000))"
KERNEL = "zero.readinto(room)"
SCRIPT = """
import time
zero, room = open('/dev/zero', 'rb', buffering=0), bytearray(1 << 20)
while True:
    end = time.monotonic() + 0.3
    while time.monotonic() < end: {work}
    time.sleep({rest})
"""


@contextmanager
def load(rest: float) -> Iterator[set[int]]:
    """One process in user mode, one in the kernel; with a rest cores are neither idle nor full. Gives the pids."""
    scripts = [SCRIPT.format(work=work, rest=rest) for work in (USER, KERNEL)]
    processes = [subprocess.Popen([sys.executable, "-c", script]) for script in scripts]
    try:
        yield {process.pid for process in processes}
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_each_core_agrees_with_mpstat(needs: Needs, tmp_path: Path) -> None:
    mpstat = needs.binary("mpstat", "sysstat")
    with load(rest=0.2), recording(tmp_path / "r") as recorder:
        began = time.time()
        said = subprocess.run([mpstat, "-P", "ALL", "-o", "JSON", str(SECONDS), "1"], capture_output=True, check=True)
        recorder.wait_for_frames(1)
        recorder.stop()
    theirs = json.loads(said.stdout)["sysstat"]["hosts"][0]["statistics"][-1]["cpu-load"]
    with open_recording(tmp_path / "r") as opened:
        start = int(began * 1e6)
        ours = {core.cpu: core for core in cores(opened, start, start + SECONDS * 1_000_000).cores}
    for row in theirs:
        if row["cpu"] == "all" or row["cpu"] == "-1":
            continue
        core = ours[int(row["cpu"])]
        for field, value in (
            ("user", row["usr"]),
            ("system", row["sys"]),
            ("softirq", row["soft"]),
            ("idle", row["idle"]),
        ):
            assert 100 * getattr(core.modes, field) == pytest.approx(value, abs=3), (row, core)


def test_the_hottest_functions_agree_with_perf(needs: Needs, tmp_path: Path) -> None:
    needs.perf_events()
    perf = needs.binary("perf", "linux-perf")
    data = tmp_path / "perf.data"
    record = [perf, "record", "-q", "-F", "99", "-a", "-g", "-e", "cpu-clock", "-k", "CLOCK_MONOTONIC", "-o", str(data)]
    with load(rest=0) as pids, recording(tmp_path / "r") as recorder:
        for left in reversed(range(3)):  # perf 6.1 now and then aborts in its own threads
            done = subprocess.run([*record, "--", "sleep", str(SECONDS)], capture_output=True, check=False)
            if done.returncode != -signal.SIGABRT or not left:
                break
        assert done.returncode == 0, done.stderr
        recorder.wait_for_frames(2)
        recorder.stop()
    theirs, first_us, last_us = _perf_leaves(perf, data, pids)
    offset_us = int((time.time() - time.monotonic()) * 1e6)
    with open_recording(tmp_path / "r") as opened:
        ours = _our_leaves(opened, first_us + offset_us, last_us + offset_us, pids)
    assert ours.total() == pytest.approx(theirs.total(), rel=0.1)
    for name, share in theirs.most_common(5):
        mine = ours[name] / ours.total()
        assert 100 * mine == pytest.approx(100 * share / theirs.total(), abs=5), (
            name,
            theirs.most_common(8),
            ours.most_common(8),
        )


def _perf_leaves(perf: str, data: Path, pids: set[int]) -> tuple[Counter[str], int, int]:
    """Leaf functions that perf saw in these processes, and the monotonic microseconds of its first and last sample."""
    script = [perf, "script", "-i", str(data), "-F", "pid,time,ip,sym"]
    text = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    leaves: Counter[str] = Counter()
    times = []
    for block in text.split("\n\n"):
        lines = block.strip().splitlines()
        if len(lines) < 2:
            continue
        pid, time_s = lines[0].split()[:2]
        times.append(float(time_s.rstrip(":")))
        if int(pid) in pids:
            leaves[_plain(lines[1].split(None, 1)[1])] += 1
    return leaves, int(min(times) * 1e6), int(max(times) * 1e6)


def _our_leaves(opened, start: int, end: int, pids: set[int]) -> Counter[str]:  # type: ignore[no-untyped-def]
    frames = {row["frame"]: row["name"] for row in opened.table("frames").to_pylist()}
    stacks = {row["stack"]: row["frames"] for row in opened.table("stacks").to_pylist()}
    tasks = {row["task"] for row in opened.table("tasks").to_pylist() if row["pid"] in pids}
    leaves: Counter[str] = Counter()
    for row in opened.table("samples", start, end).to_pylist():
        run = stacks[row["stack"]]
        if run and row["task"] in tasks:
            leaves[_plain(frames[run[-1]])] += 1
    return leaves


def _plain(name: str) -> str:
    return "[unknown]" if name.startswith("[") or "+0x" in name else name.split(".")[0]
