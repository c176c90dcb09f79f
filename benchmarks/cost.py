"""CPU: the whole recorder against `perf record -F 99 -a -g` and `mpstat -P ALL 1`, on the same minute of the same
load."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.loads import ONE_BUSY_CORE, running
from benchmarks.recorder import Beside, recorder
from benchmarks.table import Row


def measure(seconds: float) -> list[Row]:
    with tempfile.TemporaryDirectory() as scratch, running(ONE_BUSY_CORE):
        time.sleep(2)
        with recorder() as recording:
            perf = Beside(
                "perf", "record", "-q", "-F", "99", "-a", "-g", "-e", "cpu-clock", "-o", str(Path(scratch) / "p")
            )
            mpstat = Beside("mpstat", "-P", "ALL", "1")
            time.sleep(seconds)
            theirs = {"perf record": perf.stop(), "mpstat": mpstat.stop()}
        once = _start_up(Path(scratch) / "once")
        theirs["perf record"] = max(0.0, theirs["perf record"] - once)
    result = recording.result
    # What the helper adds: it compacts fifteen minutes at a time, so a minute bears a fifteenth of one run.
    helper = helper_share(seconds=60)
    minutes = result["seconds"] / 60
    ours = result["cpu_seconds"] / minutes + helper
    theirs_a_minute = sum(theirs.values()) / (seconds / 60)
    return [
        Row("recorder, CPU-seconds a minute", f"{ours:.3f}", f"of which the helper {helper:.3f}"),
        Row("perf record + mpstat, the same minute", f"{theirs_a_minute:.3f}",
            ", ".join(f"{name} {used / (seconds / 60):.3f}" for name, used in theirs.items())),
        Row("ratio", f"{ours / theirs_a_minute:.2f}", "goal: at most 1"),
        Row("start-up, CPU-seconds once", f"{result['startup_cpu_seconds']:.2f}",
            f"perf record: {once:.2f} to start and end, not counted above"),
    ]  # fmt: skip


def _start_up(output: Path) -> float:
    """CPU that perf record uses to start and to end, whatever the length."""
    perf = Beside("perf", "record", "-q", "-F", "99", "-a", "-g", "-e", "cpu-clock", "-o", str(output))
    time.sleep(1)
    return perf.stop()


def helper_share(seconds: float) -> float:
    """CPU-seconds a minute of the helper, by compacting a real recording of the busy machine once."""
    with running(ONE_BUSY_CORE), recorder(segment_s=10.0, compact_every_s=seconds - 12) as recording:
        time.sleep(seconds)
    used = float(recording.result["helper_cpu_seconds"])
    return used / 15
