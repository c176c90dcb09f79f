"""mpstat and perf beside the recorder, on the same load: the figures must agree."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.recorder_process import recording

from zombiescope.recording.cores import cores
from zombiescope.recording.reader import open_recording

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

SECONDS = 12


@contextmanager
def load() -> Iterator[set[int]]:
    """One process in user mode, one in the kernel, half the time asleep: neither idle nor full. Gives the pids."""
    nap = "import time, threading, os\n"
    scripts = [
        nap
        + "while True:\n  e = time.monotonic() + .3\n  while time.monotonic() < e: sum(range(2000))\n  time.sleep(.2)",
        nap + "z = open('/dev/zero', 'rb', buffering=0); b = bytearray(1 << 20)\n"
        "while True:\n  e = time.monotonic() + .3\n  while time.monotonic() < e: z.readinto(b)\n  time.sleep(.3)",
    ]
    processes = [subprocess.Popen([sys.executable, "-c", script]) for script in scripts]
    try:
        yield {process.pid for process in processes}
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_each_core_agrees_with_mpstat(needs: Needs, tmp_path: Path) -> None:
    mpstat = needs.binary("mpstat", "sysstat")
    with load(), recording(tmp_path / "r") as recorder:
        said = subprocess.run([mpstat, "-P", "ALL", "-o", "JSON", str(SECONDS), "1"], capture_output=True, check=True)
        recorder.wait_for_frames(1)
        recorder.stop()
    theirs = json.loads(said.stdout)["sysstat"]["hosts"][0]["statistics"][-1]["cpu-load"]
    with open_recording(tmp_path / "r") as opened:
        end = opened.end_us - 1_000_000
        ours = {core.cpu: core for core in cores(opened, end - SECONDS * 1_000_000, end).cores}
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
    with load() as pids, recording(tmp_path / "r") as recorder:
        subprocess.run(
            [
                perf,
                "record",
                "-q",
                "-F",
                "99",
                "-a",
                "-g",
                "-e",
                "cpu-clock",
                "-o",
                str(data),
                "--",
                "sleep",
                str(SECONDS),
            ],
            capture_output=True,
            check=True,
        )
        recorder.wait_for_frames(2)
        recorder.stop()
    theirs = _perf_leaves(perf, data, pids)
    with open_recording(tmp_path / "r") as opened:
        end = opened.end_us - 2_000_000
        ours = _our_leaves(opened, end - SECONDS * 1_000_000, end, pids)
    for name, share in theirs.most_common(5):
        mine = ours[name] / ours.total()
        assert 100 * mine == pytest.approx(100 * share / theirs.total(), abs=5), (
            name,
            theirs.most_common(8),
            ours.most_common(8),
        )


def _perf_leaves(perf: str, data: Path, pids: set[int]) -> Counter[str]:
    """Leaf functions that perf saw in these processes, unresolved user code under one name."""
    text = subprocess.run(
        [perf, "script", "-i", str(data), "-F", "pid,ip,sym"], capture_output=True, text=True, check=True
    ).stdout
    leaves: Counter[str] = Counter()
    for block in text.split("\n\n"):
        lines = block.strip().splitlines()
        if len(lines) > 1 and int(lines[0]) in pids:
            leaves[_plain(lines[1].split(None, 1)[1])] += 1
    return leaves


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
