"""When a pass of the live diagnosis is ended: when it hangs, not when it is slow.

A pass of half a CPU-second takes minutes in a pod with a small quota, or on an overloaded node: that is when it is
needed. A pass that is killed at a fixed time has used a minute for nothing, and so has the next. A pass that hangs (on
a lock, on a disk that does not answer) uses no CPU time; one that never ends is stopped by its CPU limit (RLIMIT_CPU).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from zombiescope.kernel import process_vitals

CHECKS = 4
"""While it may be without progress: so often it is asked for its CPU time."""
LEAST_RATIO = 0.005
"""Of a CPU: who gets less is not slow, it waits. A loop around a sleep has a twentieth of that."""
MOST_TIMES = 4.0
"""As long as it may be without progress: so many times that is the end in any case."""


@dataclass(slots=True)
class PassLimit:
    """Of a child process, which may be without progress for `idle_s`."""

    pid: int
    idle_s: float
    _began_s: float = 0.0
    _moved_s: float = 0.0
    _used_s: float = 0.0
    """CPU time when it last had got on."""

    def __post_init__(self) -> None:
        self._began_s = self._moved_s = time.monotonic()

    @property
    def check_s(self) -> float:
        return self.idle_s / CHECKS

    def is_over(self) -> bool:
        now_s, used_s = time.monotonic(), _cpu_s(self.pid)
        if used_s is not None and used_s - self._used_s >= LEAST_RATIO * self.idle_s:
            self._moved_s, self._used_s = now_s, used_s
        return now_s - self._moved_s >= self.idle_s or now_s - self._began_s >= MOST_TIMES * self.idle_s


def _cpu_s(pid: int) -> float | None:
    """CPU time of a process; None where that cannot be read."""
    vitals = process_vitals.read(pid)
    return None if vitals is None else vitals.cpu_s
