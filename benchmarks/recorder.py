"""A recorder to be measured, and the tools beside it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Recording:
    """A finished recording and what the recorder said of it."""

    directory: Path
    pid: int
    result: dict[str, Any] = field(default_factory=dict)

    def rss_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@contextmanager
def recorder(**config: Any) -> Iterator[Recording]:
    """Records while the block runs; `result` is filled when it ends."""
    with tempfile.TemporaryDirectory(prefix="zombiescope-bench-") as scratch:
        directory = Path(scratch) / "r"
        settings = {"dir": str(directory), "node": "bench", "json": True, "quiet": True, **config}
        process = subprocess.Popen(
            [sys.executable, "-m", "zombiescope.recorder", json.dumps(settings)],
            stdout=subprocess.PIPE,
            env={**os.environ, "ZOMBIESCOPE_RUNTIME_DIR": scratch},
        )
        recording = Recording(directory, process.pid)
        while not list(directory.glob("node=bench/log/*.seg")):
            time.sleep(0.05)
        time.sleep(1.5)  # past its start
        try:
            yield recording
        finally:
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate()
        recording.result = json.loads(out)
        recording.result["scratch"] = _keep(recording)


def _keep(recording: Recording) -> dict[str, Any]:
    """Figures that need the files, taken before they go."""
    from zombiescope.store.reader import open_recording

    with open_recording(recording.directory) as opened:
        cost = opened.table("cost").to_pylist()
        return {"cost": cost, "samples": opened.table("samples").num_rows}


def cpu_seconds(usage: Any) -> float:
    return float(usage.ru_utime + usage.ru_stime)


class Beside:
    """Another tool that runs meanwhile; `stop` gives the CPU seconds it used."""

    def __init__(self, *command: str) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def used(self) -> float:
        """CPU-seconds so far, exact to the nanosecond (one thread)."""
        return int(Path(f"/proc/{self._process.pid}/schedstat").read_text().split()[0]) / 1e9

    def stop(self) -> float:
        self._process.send_signal(signal.SIGINT)
        _, _, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = 0
        return cpu_seconds(usage)
