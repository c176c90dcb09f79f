"""What looks may cost: 0.3% of one core for those that can wait, so that a healthy hour stays below 0.5%."""

from __future__ import annotations

from dataclasses import dataclass

RATIO = 0.003
MOST_US = 4_000_000
"""CPU time that is saved up for a node on which nothing was looked at for long."""
GAP_US = 3_000_000
SPENT_GAP_US = 5_000_000


@dataclass(slots=True)
class LookBudget:
    left_us: float = MOST_US
    _last_us: int | None = None

    def second(self, now_us: int) -> None:
        """Time passes; a clock that was set back gives nothing."""
        if self._last_us is not None:
            self.left_us = min(MOST_US, self.left_us + RATIO * max(0, now_us - self._last_us))
        self._last_us = now_us

    def spend(self, cpu_us: int) -> None:
        self.left_us = max(-MOST_US, self.left_us - cpu_us)

    @property
    def allows(self) -> bool:
        """Whether a look may be taken that could wait."""
        return self.left_us > 0

    @property
    def gap_us(self) -> int:
        """Between any two looks, those that cannot wait included."""
        return GAP_US if self.left_us > 0 else SPENT_GAP_US
