"""So many a second and no more; what was not used is saved for a burst."""

from __future__ import annotations


class Budget:
    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._left = burst
        self._at_us: int | None = None

    def take(self, now_us: int) -> bool:
        """One of them, if there is one left."""
        passed = 0 if self._at_us is None else max(0, now_us - self._at_us)
        self._left = min(self._burst, self._left + passed * self._per_second / 1e6)
        self._at_us = now_us
        if self._left < 1:
            return False
        self._left -= 1
        return True
