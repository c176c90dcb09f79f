"""A process that belongs to no unit stands still (SIGSTOP) until it is let go on: nothing of it is ended or lost.

For a culprit that nobody but its starter could start again. Known by number and start time, so that another process
that has its number now is left alone.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from zombiescope.fix import signals
from zombiescope.fix.step import ActionFailedError, bounded
from zombiescope.kernel.process import ProcessStat, read_stat

_STOPPED = "Tt"
_ENDED = "ZX"
_STOPS_S = 2.0


@dataclass(frozen=True, slots=True)
class SuspendProcess:
    pid: int
    start_time_ticks: int
    kind: ClassVar[str] = "process.suspend"

    def __post_init__(self) -> None:
        if not isinstance(self.pid, int) or not isinstance(self.start_time_ticks, int) or self.pid <= 1:
            raise ValueError(f"{self.pid!r} is not a process that may be suspended")

    def arguments(self) -> dict[str, Any]:
        return {"pid": self.pid, "start_time_ticks": self.start_time_ticks}

    def command(self) -> tuple[str, ...] | None:
        return ("kill", "-STOP", str(self.pid))

    def touches(self) -> tuple[str, ...]:
        stat = self._it()
        if stat is None:
            raise ActionFailedError(f"the process {self.pid} has ended")
        return bounded([f"{stat.comm} (pid {stat.pid}) is paused; its child processes continue"])

    def before(self) -> dict[str, Any]:
        stat = self._it()
        return {"exists": stat is not None, "stopped": stat is not None and stat.state in _STOPPED}

    def is_applied(self) -> bool:
        """Ended is ended, too."""
        stat = self._it()
        return stat is None or stat.state in _STOPPED

    def apply(self) -> None:
        self._send(signal.SIGSTOP)
        end = time.monotonic() + _STOPS_S
        while not self.is_applied():  # one in the kernel stops when it comes out of there
            if time.monotonic() > end:
                raise ActionFailedError(f"pid {self.pid} has not stopped yet after SIGSTOP: it is busy in the kernel")
            time.sleep(0.01)

    def undo(self, before: Mapping[str, Any]) -> None:
        if not before.get("stopped"):
            self._send(signal.SIGCONT)

    def _send(self, number: int) -> None:
        if self._it() is None:
            return
        try:
            signals.send(self.pid, self.start_time_ticks, number)
        except OSError as error:
            raise ActionFailedError(f"pid {self.pid}: {error.strerror}") from error

    def _it(self) -> ProcessStat | None:
        stat = read_stat(self.pid)
        same = stat is not None and stat.start_time_ticks == self.start_time_ticks and stat.state not in _ENDED
        return stat if same else None


ACTIONS = (SuspendProcess,)
