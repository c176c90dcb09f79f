"""Disk: bytes for a row of samples, and the whole recording against perf.data of the same mixed load."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.loads import MIXED, running
from benchmarks.recorder import Beside, recorder
from benchmarks.table import Row


def measure(seconds: float) -> list[Row]:
    with tempfile.TemporaryDirectory() as scratch, running(MIXED, 2):
        data = Path(scratch) / "perf.data"
        with recorder() as recording:
            perf = Beside("perf", "record", "-q", "-F", "99", "-a", "-g", "-e", "cpu-clock", "-o", str(data))
            time.sleep(seconds)
            perf.stop()
            node = recording.directory / "node=bench"
            log_bytes = _bytes(node / "log")
            copy = Path(scratch) / "copy"
            subprocess.run(["cp", "-a", str(recording.directory), str(copy)], check=True)
        perf_bytes = data.stat().st_size
        node = copy / "node=bench"
        (node / "lock").unlink()
        subprocess.run([sys.executable, "-m", "zombiescope.store.compact", str(node)], check=True)
        parquet = sum(path.stat().st_size for path in node.glob("date=*/*"))
        samples = next(node.glob("date=*/samples-*.parquet"))
        rows = int(recording.result["scratch"]["samples"])
        return [
            Row("samples table, bytes a row", f"{samples.stat().st_size / rows:.1f}", f"{rows} rows; goal: at most 8"),
            Row(
                "whole recording as Parquet",
                f"{parquet / 1e3:.0f} kB",
                f"{100 * parquet / perf_bytes:.1f} % of perf.data",
            ),
            Row(
                "whole recording as log",
                f"{log_bytes / 1e3:.0f} kB",
                f"{100 * log_bytes / perf_bytes:.1f} % of perf.data",
            ),
            Row("perf.data of the same load", f"{perf_bytes / 1e3:.0f} kB", f"{seconds:.0f} s"),
        ]


def _bytes(directory: Path) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(directory))
