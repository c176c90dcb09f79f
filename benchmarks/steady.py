"""What recording costs once it has started: the slope of CPU time between two moments, by process, with all helpers.

    python -m benchmarks.steady [--seconds 60] [--busy 1 16] [--look]

Under one busy Python process, and under one for each core. `--look` also takes passes of the live diagnosis over what
was recorded, in forks of a process that has loaded it, as a node does. The machine has to be quiet: whatever else runs
is sampled, looked up and read, too.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.loads import running
from benchmarks.table import Row
from benchmarks.width import tree_cpu_s

SETTLE_S = 20.0
LOOKS = 4
BUSY = """
import hashlib, json
block = b'x' * 65536
def leaf(n): return hashlib.sha256(block).digest() if n % 3 else json.dumps({str(i): i for i in range(200)})
def call(n, depth): return leaf(n) if depth == 0 else call(n + depth, depth - 1)
n = 0
while True:
    call(n, n % 9 + 3)
    n += 1
"""


def recorded(busy: int, seconds: float, directory: Path) -> dict[str, Any]:
    """`cpu_s` by process, of the time after the start and the first look at whom it sees."""
    settings = {"dir": str(directory), "node": "steady", "json": True, "quiet": True}
    with running(BUSY, busy):
        process = subprocess.Popen(
            [sys.executable, "-m", "zombiescope.recorder", json.dumps(settings)],
            stdout=subprocess.PIPE, env={**os.environ, "ZOMBIESCOPE_RUNTIME_DIR": str(directory.parent)},
        )  # fmt: skip
        time.sleep(SETTLE_S)
        before, began = tree_cpu_s(process.pid), time.monotonic()
        time.sleep(seconds)
        after, lasted = tree_cpu_s(process.pid), time.monotonic() - began
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate()
    said = json.loads(out)
    used = {name: (after[name] - before.get(name, 0.0)) / lasted for name in after}
    return {"busy": busy, "of_a_core": used, "samples_a_second": said["samples"] / said["seconds"], "said": said}


def looks(node_dir: Path) -> list[float]:
    """CPU-seconds of each pass over the last two minutes."""
    from zombiescope.diagnosis import live, standby
    from zombiescope.store.reader import open_recording

    standby.load()
    with open_recording(node_dir) as recording:
        end_us = recording.end_us
    found = []
    for _ in range(LOOKS):
        pid = os.fork()
        if pid == 0:
            try:
                gc.disable()
                live.look(node_dir, end_us - 120_000_000)
            finally:
                os._exit(0)
        _, _, usage = os.wait4(pid, 0)
        found.append(usage.ru_utime + usage.ru_stime)
    return found


def measure(seconds: float) -> list[Row]:
    return [row for busy in sorted({1, os.cpu_count() or 1}) for row in _rows(busy, seconds)]


def _rows(busy: int, seconds: float) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="zombiescope-steady-") as scratch:
        return _as_rows(recorded(busy, seconds, Path(scratch) / "r"))


def _as_rows(found: dict[str, Any]) -> list[Row]:
    used, said = found["of_a_core"], found["said"]
    parts = ", ".join(f"{name} {100 * ratio:.2f}%" for name, ratio in used.items())
    rate = found["samples_a_second"]
    name = f"{found['busy']} busy Python process{'es' if found['busy'] > 1 else ''}"
    return [
        Row(f"{name}: all of it, of a core", f"{100 * sum(used.values()):.2f}%", parts),
        Row(f"{name}: recorder, CPU a sample", f"{1e6 * used['recorder'] / rate:.1f} us", f"{rate:.0f} a second"),
        Row(f"{name}: start-up, CPU-seconds", f"{said['startup_cpu_seconds']:.2f}", "goal: 0.25"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--busy", type=int, nargs="+", default=[1])
    parser.add_argument("--look", action="store_true")
    options = parser.parse_args()
    for busy in options.busy:
        with tempfile.TemporaryDirectory(prefix="zombiescope-steady-") as scratch:
            found = recorded(busy, options.seconds, Path(scratch) / "r")
            for row in _as_rows(found):
                print(f"{row.name}: {row.value} ({row.note})", flush=True)
            if options.look:
                spent = looks(Path(scratch) / "r" / "node=steady")
                print("passes, CPU-seconds:", ", ".join(f"{one:.3f}" for one in spent), flush=True)
    print(f"load average {os.getloadavg()[0]:.1f}, max RSS of this {resource.getrusage(0).ru_maxrss >> 10} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
