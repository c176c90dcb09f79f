"""Starts the doctor: a niced process that diagnoses the last minutes and writes incidents.json beside the recording."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from zombiescope.recorder.alarm import Alarm
from zombiescope.recorder.child import ChildProcess
from zombiescope.recording import incident_file

MODULE = "zombiescope.diagnosis.live"
BEFORE_US = 30_000_000
MAX_RUN_US = 60_000_000


class Doctor:
    """Looks when the alarm says so; while one is looking, the next look waits."""

    def __init__(self, node_dir: Path) -> None:
        self.alarm = Alarm()
        self.process = ChildProcess(MODULE, MAX_RUN_US)
        self._node_dir = node_dir
        self._waiting_us: int | None = None
        self._close_incidents()  # of a recorder before this one

    def second(self, now_us: int) -> None:
        """Once a second, after the frame was written. Raises OSError when it cannot be started; the look waits."""
        since_us = self.alarm.since_us
        if self.alarm.due(now_us):
            self._waiting_us = min(self._waiting_us or now_us, since_us or now_us)
        self.process.reap(now_us)
        if self._waiting_us is not None and not self.process.running:
            self.process.start(now_us, str(self._node_dir), str(self._waiting_us - BEFORE_US))
            self._waiting_us = None

    def stop(self) -> None:
        self.process.stop()
        self._close_incidents()

    def _close_incidents(self) -> None:
        with suppress(OSError):
            incident_file.close(self._node_dir)
