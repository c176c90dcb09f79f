"""Starts the doctor: a niced process that diagnoses the last minutes and writes incidents.json beside the recording.

The recorder itself loads nothing for it. At most one runs at a time, and its CPU time is counted as ours.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from zombiescope.recorder.alarm import Alarm
from zombiescope.recording import incident_file

BEFORE_US = 30_000_000
MAX_RUN_US = 60_000_000


class Doctor:
    def __init__(self, node_dir: Path, *, wanted: bool) -> None:
        self.alarm = Alarm()
        self._node_dir = node_dir
        self._wanted = wanted
        self._pid: int | None = None
        self._started_us = 0
        self._waiting_us: int | None = None
        self.cpu_us = 0
        self.looks = 0
        if wanted:
            self._close_open()  # of a recorder before this one

    def second(self, now_us: int) -> None:
        """Once a second, after the frame was written."""
        if not self._wanted:
            return
        since_us = self.alarm.since_us
        if self.alarm.due(now_us):
            self._waiting_us = min(self._waiting_us or now_us, since_us or now_us)
        self._reap(now_us)
        if self._waiting_us is not None and self._pid is None:
            since_us, self._waiting_us = self._waiting_us, None
            self._start(now_us, since_us - BEFORE_US)

    def _start(self, now_us: int, from_us: int) -> None:
        argv = [sys.executable, "-m", "zombiescope.diagnosis.live", str(self._node_dir), str(from_us)]
        null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]
        with suppress(OSError):
            self._pid = os.posix_spawn(sys.executable, argv, os.environ, file_actions=null)
            self._started_us = now_us
            self.looks += 1

    def _reap(self, now_us: int) -> None:
        if self._pid is None:
            return
        pid, _, usage = os.wait4(self._pid, os.WNOHANG)
        if pid:
            self._pid = None
            self.cpu_us += int((usage.ru_utime + usage.ru_stime) * 1e6)
        elif now_us - self._started_us > MAX_RUN_US:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)

    def stop(self) -> None:
        if self._pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGTERM)
            _, _, usage = os.wait4(self._pid, 0)
            self.cpu_us += int((usage.ru_utime + usage.ru_stime) * 1e6)
            self._pid = None
        if self._wanted:
            self._close_open()

    def _close_open(self) -> None:
        with suppress(OSError):
            incident_file.close(self._node_dir)
