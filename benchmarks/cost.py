"""CPU: the whole recorder against `perf record -F 99 -a -g` and `mpstat -P ALL 1`, on the same minute of the same
load."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.loads import ONE_BUSY_CORE, running
from benchmarks.recorder import Beside, recorder
from benchmarks.table import Row

SETTLE_S = 5


def measure(seconds: float) -> list[Row]:
    with tempfile.TemporaryDirectory() as scratch, running(ONE_BUSY_CORE):
        time.sleep(2)
        with recorder() as recording:
            perf = Beside(
                "perf", "record", "-q", "-F", "99", "-a", "-g", "-e", "cpu-clock", "-o", str(Path(scratch) / "p")
            )
            mpstat = Beside("mpstat", "-P", "ALL", "1")
            time.sleep(SETTLE_S)
            before = perf.used() + mpstat.used()
            time.sleep(seconds - SETTLE_S)
            steady = (perf.used() + mpstat.used() - before) * 60 / (seconds - SETTLE_S)
            whole = (perf.stop() + mpstat.stop()) * 60 / seconds
    result = recording.result
    # What the helper adds: it compacts fifteen minutes at a time, so a minute bears a fifteenth of one run.
    helper = helper_share(seconds=60)
    ours = result["cpu_seconds"] * 60 / result["seconds"] + helper
    return [
        Row("recorder, CPU-seconds a minute", f"{ours:.3f}", f"of which the helper {helper:.3f}"),
        Row(
            "perf record + mpstat, whole commands, the same minute",
            f"{whole:.3f}",
            "as a person runs them, file after file",
        ),
        Row("ratio", f"{ours / whole:.2f}", "goal: at most 1"),
        Row(
            "perf record + mpstat between their start and end",
            f"{steady:.3f}",
            f"ratio {ours / steady:.1f}: see design record 0005",
        ),
        Row("recorder's start-up, CPU-seconds once", f"{result['startup_cpu_seconds']:.2f}", "imports, kallsyms"),
    ]


def helper_share(seconds: float) -> float:
    """CPU-seconds a minute of the helper, by compacting a real recording of the busy machine once."""
    with running(ONE_BUSY_CORE), recorder(segment_s=10.0, compact_every_s=seconds - 12) as recording:
        time.sleep(seconds)
    used = float(recording.result["helper_cpu_seconds"])
    return used / 15
