"""The compaction helper: a niced process of its own that turns closed segments into Parquet, so that pyarrow's memory
and start-up never belong to the recorder. Its CPU time is counted as ours."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MAX_RUN_US = 600_000_000


@dataclass(frozen=True, slots=True)
class Finished:
    exit_code: int
    cpu_us: int
    max_rss_bytes: int


class Helper:
    """At most one at a time, at most every `every_us`."""

    def __init__(self, node_dir: Path, every_us: int) -> None:
        self._node_dir = node_dir
        self._every_us = every_us
        self._next_us: int | None = None
        self._pid: int | None = None
        self._started_us = 0
        self.cpu_us = 0
        self.peak_rss_bytes = 0

    def start_if_due(self, now_us: int, segments: list[str]) -> None:
        """Starts the helper on these closed segments when it is time."""
        if self._next_us is None:
            self._next_us = now_us + self._every_us
        if self._pid is not None or not segments or now_us < self._next_us:
            return
        self._next_us = now_us + self._every_us
        argv = [sys.executable, "-m", "zombiescope.recording.compact", str(self._node_dir), *segments]
        null = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        ]
        self._pid = os.posix_spawn(sys.executable, argv, os.environ, file_actions=null)
        self._started_us = now_us

    def look(self, now_us: int) -> Finished | None:
        """Reaps the helper if it has ended; one that runs too long is ended."""
        if self._pid is None:
            return None
        pid, status, usage = os.wait4(self._pid, os.WNOHANG)
        if pid == 0:
            if now_us - self._started_us > MAX_RUN_US:
                with suppress(ProcessLookupError):
                    os.kill(self._pid, signal.SIGKILL)
            return None
        self._pid = None
        cpu_us = int((usage.ru_utime + usage.ru_stime) * 1e6)
        self.cpu_us += cpu_us
        self.peak_rss_bytes = max(self.peak_rss_bytes, usage.ru_maxrss * 1024)
        return Finished(os.waitstatus_to_exitcode(status), cpu_us, usage.ru_maxrss * 1024)

    def stop(self) -> None:
        """Ends a running helper; what it had not renamed into place is as if it had never run."""
        if self._pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGTERM)
            _, _, usage = os.wait4(self._pid, 0)
            self.cpu_us += int((usage.ru_utime + usage.ru_stime) * 1e6)
            self._pid = None
