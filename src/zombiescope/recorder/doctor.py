"""Calls the live diagnosis: a process that diagnoses the last minute or two and writes incidents.json beside the
recording. That it failed is told by its pulse (piped_process.py); a pass that failed is tried again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zombiescope.recorder.alarm import Alarm
from zombiescope.recorder.doctor_process import DoctorProcess
from zombiescope.recorder.look_schedule import LookAnswer
from zombiescope.recorder.piped_process import Restarts
from zombiescope.store import incident_file

# --- window of a pass -------------------------------------------------------------------------------------------------
# How far back a pass of the live diagnosis looks: less after one that was slow or did not end in its time.
#
# A pass costs about as much as its window is long, and one that takes more than a minute is killed. On a machine that
# has hardly any CPU left for it (a pod with a small quota, an emulated processor) a pass over two minutes never ends,
# however often it is tried, and whatever is wrong there is never named. The last ten seconds cost a quarter of that,
# and say as well what is wrong now: of what was before, earlier passes know.

WINDOWS_US = ((30_000_000, 120_000_000), (15_000_000, 60_000_000), (8_000_000, 25_000_000), (4_000_000, 12_000_000))
"""(before what is suspicious, at most in all), the longest first. Measured on the founding case: a pass over 120 s took
0.6 s of CPU, over 40 s 0.4, over 20 s 0.33, over 10 s 0.17; each named the same cause with the same confidence."""
FASTER = 2
"""Levels, after one that was killed: that took a minute, in which nothing was diagnosed."""
SLOW_US = 20_000_000
"""An answer that is older than this is late: better about less."""
QUICK_US = 5_000_000
"""After a pass that took no longer, the next one may look at more."""


@dataclass(slots=True)
class PassWindow:
    """asked() and then worked() or failed(), for each pass."""

    level: int = 0
    _asked_us: int | None = None

    def asked(self, now_us: int, since_us: int) -> int:
        """From when on to look at what has been suspicious since then."""
        self._asked_us = now_us
        before_us, most_us = WINDOWS_US[self.level]
        return max(since_us - before_us, now_us - most_us)

    def failed(self) -> None:
        """The pass was killed, or died."""
        self._shorter(FASTER)

    def worked(self, now_us: int) -> None:
        took_us = 0 if self._asked_us is None else now_us - self._asked_us
        if took_us > SLOW_US:
            self._shorter(1)
        elif 0 <= took_us <= QUICK_US:  # a clock that was set back says nothing
            self.level = max(self.level - 1, 0)
        self._asked_us = None

    def _shorter(self, levels: int) -> None:
        self._asked_us = None
        self.level = min(self.level + levels, len(WINDOWS_US) - 1)


# --- doctor -----------------------------------------------------------------------------------------------------------

BEFORE_US, MOST_US = WINDOWS_US[0]
"""However long something lasts, this much is looked at: what was before is known from earlier looks."""
LAST_LOOK_S = 10.0
FIRST_RETRY_US, MOST_RETRY_US = 30_000_000, 600_000_000
"""A pass that failed is tried again, ever more rarely: it may have failed for what was recorded just then."""


class Doctor:
    """Looks when the alarm says so; while one is looking, the next look waits."""

    def __init__(self, node_dir: Path) -> None:
        self.alarm = Alarm()
        self.process = DoctorProcess(node_dir)
        self.unexplained: Callable[[list[tuple[int, int]], int], None] = lambda _suspects, _now_us: None
        """Told of the processes of open incidents that no pattern explains."""
        self._window = PassWindow()
        self._node_dir = node_dir
        self._retries = Restarts(FIRST_RETRY_US, MOST_RETRY_US)
        self._failed_us: int | None = None
        """Since when there is something that no pass has seen, because one failed."""
        self._waiting_us: int | None = None
        self._looking_us: int | None = None
        self._close_incidents()  # of a recorder before this one

    def second(self, now_us: int) -> None:
        """Once a second, after the frame was written. Raises OSError when it cannot be started; the look waits."""
        since_us = self.alarm.due(now_us)
        if since_us is not None:
            self._wait(since_us)
        self._listen(now_us)
        if self._failed_us is not None and self._retries.is_due(now_us):
            self._wait(self._failed_us)
        self.process.start(now_us)
        if self._waiting_us is not None and self.process.free:
            self.process.ask(now_us, self._window.asked(now_us, self._waiting_us))
            self._looking_us, self._waiting_us = self._waiting_us, None

    def look_again(self, since_us: int) -> None:
        """There is more to know of what a pass has seen."""
        self._wait(since_us)

    def _wait(self, since_us: int) -> None:
        self._waiting_us = since_us if self._waiting_us is None else min(self._waiting_us, since_us)

    def _listen(self, now_us: int) -> None:
        answer, ended = self.process.listen()
        if answer is not None:
            self._understand(now_us, answer)
            self._looking_us = None
        if ended is not None and self._looking_us is not None:
            self._window.failed()
            self._wait(self._looking_us)

    def _understand(self, now_us: int, answer: dict[str, Any]) -> None:
        if answer.get("exit"):
            self._window.failed()
            self.alarm.schedule.budget.spend(int(answer.get("cpu_us") or 0))
            self._failed_us = self._looking_us if self._failed_us is None else self._failed_us
            self._retries.hold(now_us)
            return
        self._failed_us = None
        self._retries.worked()
        self._window.worked(now_us)
        numbers = (int(answer.get(name) or 0) for name in ("cpu_us", "new", "open", "serious"))
        self.alarm.schedule.answered(now_us, LookAnswer(*numbers))
        self.unexplained(_suspects(answer.get("unexplained")), now_us)

    def stop(self, now_us: int) -> None:
        """Not before it has seen what was suspicious up to the end."""
        since_us = self.alarm.schedule.unseen() if self._waiting_us is None else self._waiting_us
        with suppress(OSError):
            if since_us is not None and self.process.awaited(LAST_LOOK_S):
                self.process.ask(now_us, self._window.asked(now_us, since_us))
                self.process.awaited(LAST_LOOK_S)
        self.process.stop()
        self._close_incidents()

    def _close_incidents(self) -> None:
        with suppress(OSError):
            incident_file.close(self._node_dir)


def _suspects(said: object) -> list[tuple[int, int]]:
    pairs = [one for one in said if isinstance(one, list) and len(one) == 2] if isinstance(said, list) else []
    return [(pid, ticks) for pid, ticks in pairs if isinstance(pid, int) and isinstance(ticks, int) and pid > 0]
