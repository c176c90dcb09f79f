"""Calls the doctor: a process that diagnoses the last minute or two and writes incidents.json beside the recording."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from zombiescope.recorder.alarm import Alarm
from zombiescope.recorder.doctor_process import DoctorProcess
from zombiescope.recorder.look_schedule import LookAnswer
from zombiescope.recording import incident_file
from zombiescope.recording.event import Event

BEFORE_US = 30_000_000
MOST_US = 120_000_000
"""However long something lasts, this much is looked at: what was before is known from earlier looks."""
LAST_LOOK_S = 10.0


def _nobody(_: Event) -> None:
    return None


class Doctor:
    """Looks when the alarm says so; while one is looking, the next look waits."""

    def __init__(self, node_dir: Path) -> None:
        self.alarm = Alarm()
        self.process = DoctorProcess(node_dir)
        self.tell: Callable[[Event], None] = _nobody
        """Whom to tell that a look failed."""
        self._node_dir = node_dir
        self._waiting_us: int | None = None
        self._looking_us: int | None = None
        self._close_incidents()  # of a recorder before this one

    def second(self, now_us: int) -> None:
        """Once a second, after the frame was written. Raises OSError when it cannot be started; the look waits."""
        since_us = self.alarm.due(now_us)
        if since_us is not None:
            self._wait(since_us)
        self._listen(now_us)
        self.process.start(now_us)
        if self._waiting_us is not None and self.process.free:
            self.process.ask(now_us, _from_us(now_us, self._waiting_us))
            self._looking_us, self._waiting_us = self._waiting_us, None

    def _wait(self, since_us: int) -> None:
        self._waiting_us = since_us if self._waiting_us is None else min(self._waiting_us, since_us)

    def _listen(self, now_us: int) -> None:
        answer, ended = self.process.listen(now_us)
        if answer is not None:
            self._looking_us = None
            self._understand(now_us, answer)
        if ended is not None:
            if self._looking_us is not None:
                self._wait(self._looking_us)
            text = f"the doctor does not answer any more: {ended}; it is started again"
            self.tell(Event(now_us, "helper_failed", "recorder", "warning", text))

    def _understand(self, now_us: int, answer: dict[str, Any]) -> None:
        if answer.get("exit"):
            text = f"a look of the doctor failed: {answer.get('why') or answer['exit']}"
            self.tell(Event(now_us, "helper_failed", "recorder", "warning", text))
            self.alarm.schedule.budget.spend(int(answer.get("cpu_us") or 0))
            return
        numbers = (int(answer.get(name) or 0) for name in ("cpu_us", "new", "open", "serious"))
        self.alarm.schedule.answered(now_us, LookAnswer(*numbers))

    def stop(self, now_us: int) -> None:
        """Not before it has seen what was suspicious up to the end."""
        since_us = self.alarm.schedule.unseen() if self._waiting_us is None else self._waiting_us
        with suppress(OSError):
            if since_us is not None and self.process.awaited(LAST_LOOK_S):
                self.process.ask(now_us, _from_us(now_us, since_us))
                self.process.awaited(LAST_LOOK_S)
        self.process.stop()
        self._close_incidents()

    def _close_incidents(self) -> None:
        with suppress(OSError):
            incident_file.close(self._node_dir)


def _from_us(now_us: int, since_us: int) -> int:
    return max(since_us - BEFORE_US, now_us - MOST_US)
