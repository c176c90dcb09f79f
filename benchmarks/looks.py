"""What one look of the live doctor costs at 2, 16 and 96 cores: CPU and memory, and what loading everything costs.

The last minutes of a generated node, as log segments, end six seconds after a core was lost. Beside the process that is
kept warm, the same look is taken by one that is started for it, as it was before; both in one run, for the machine is
twice as slow on another day.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import generate, live_log
from benchmarks.generate import Plan
from benchmarks.table import Row
from zombiescope.base import python as _python
from zombiescope.recorder.doctor import BEFORE_US
from zombiescope.recorder.doctor_process import ENVIRONMENT, MODULE
from zombiescope.store.reader import open_recording

MINUTES = 7
LOST_S = 6
LOOKS = 5
GOALS = {2: "", 16: "goal: 0.3", 96: "goal: 1.0"}
COLD = (
    "import sys, resource\nfrom pathlib import Path\nfrom zombiescope.diagnosis import live\n"
    "live.look(Path(sys.argv[1]), int(sys.argv[2]))\nused = resource.getrusage(resource.RUSAGE_SELF)\n"
    "print(int((used.ru_utime + used.ru_stime) * 1e6))\n"
)


def measure() -> list[Row]:
    return [row for cpus in GOALS for row in _of_width(cpus)]


def _of_width(cpus: int) -> list[Row]:
    plan = Plan(0.25, cpus)
    with tempfile.TemporaryDirectory() as place, open_recording(generate.cached(plan)) as recording:
        end_us = (plan.stuck_us // 1_000_000 + LOST_S) * 1_000_000
        seconds = MINUTES * 60
        node_dir = live_log.as_log(recording, Path(place), end_us - seconds * 1_000_000, seconds)
        return _looks(cpus, node_dir, end_us - LOST_S * 1_000_000 - BEFORE_US)


def _looks(cpus: int, node_dir: Path, from_us: int) -> list[Row]:
    first, *again, own = _warm(node_dir, from_us)
    warm_s = median(one["cpu_us"] for one in again) / 1e6
    cold_s = _cold(node_dir, from_us)
    loading_s = (again[-1]["total_cpu_us"] - sum(one["cpu_us"] for one in (first, *again))) / 1e6
    name = f"a look at {cpus} cores"
    what = f"{GOALS[cpus]}; a process started for it: {cold_s:.2f}".removeprefix("; ")
    return [
        Row(f"{name}: CPU-seconds", f"{warm_s:.2f}", what),
        Row(f"{name} that finds something new", f"{first['cpu_us'] / 1e6:.2f}", "looks twice, with all the history"),
        Row(f"{name}: memory while it looks", f"{again[-1]['rss_bytes'] / 1e6:.0f} MB",
            f"{own['anonymous'] / 1e3:.0f} MB of its own while it waits, {own['rss'] / 1e3:.0f} MB resident; "
            f"loading took {loading_s:.2f} CPU-seconds"),
    ]  # fmt: skip


def _warm(node_dir: Path, from_us: int) -> list[dict[str, Any]]:
    """The answers, and last what the process holds while it waits."""
    process = subprocess.Popen(
        _python.module(MODULE, str(node_dir)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env=os.environ | ENVIRONMENT,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    answers: list[dict[str, Any]] = []
    for _ in range(LOOKS):
        process.stdin.write(b"%d\n" % from_us)
        process.stdin.flush()
        answers.append(json.loads(process.stdout.readline()))
    answers.append(_memory_kb(process.pid))
    process.stdin.close()
    process.wait()
    process.stdout.close()
    return answers


def _memory_kb(pid: int) -> dict[str, Any]:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    found = dict(re.findall(r"^(Rss|Anonymous): +(\d+) kB", text, re.M))
    return {"rss": int(found["Rss"]), "anonymous": int(found["Anonymous"])}


def _cold(node_dir: Path, from_us: int) -> float:
    """Likewise the median, of a known incident."""
    command = _python.safe("-c", COLD, str(node_dir), str(from_us))
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(3)]
    return median(int(one) for one in runs) / 1e6
