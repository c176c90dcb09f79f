"""How often Python is looked at, and how many: what it costs is measured, and where that is more than ALLOWED all looks
become rarer.

The few threads that matter most are looked at every 0.1 s, all others every second. What finding and naming costs when
a process is new is part of it, spread over the minute after.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_PROCESSES = 64
MOST_FAST = 16
"""Threads that are looked at more often than the others."""
ALLOWED = 0.012
"""Of a core."""
FAST_S, SLOW_S = 0.1, 1.0
MOST_S = 30.0
_MEMORY_S = 10.0
"""What was used is forgotten in about that time."""
MOST_DEBT = 60.0
"""A first look that cost a second must not keep us from looking for more than this."""


@dataclass(slots=True)
class Pace:
    allowed: float = ALLOWED
    used: float = 0.0
    """Of a core, lately."""

    def spent(self, cpu_s: float, wall_s: float) -> None:
        """So much CPU in so much time."""
        if wall_s <= 0:
            return
        weight = min(1.0, wall_s / _MEMORY_S)
        self.used = min(self.used + weight * (cpu_s / wall_s * self.slower - self.used), self.allowed * MOST_DEBT)

    @property
    def slower(self) -> float:
        """How many times rarer than could be; `used` is what the full pace would cost."""
        return max(1.0, self.used / self.allowed)

    @property
    def fast_s(self) -> float:
        return min(FAST_S * self.slower, MOST_S)

    @property
    def slow_s(self) -> float:
        return min(max(SLOW_S * self.slower, self.fast_s), MOST_S)
