"""What a number usually is on this node: its mean and its spread over the last minutes.

A healthy node of 192 cores spends more time in the kernel than a sick one of two has altogether, so a total is judged
by what it was before. What stays high for some minutes becomes usual.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

SPAN = 300
"""Seconds that it remembers."""
LEAST = 30
"""Seconds after which it judges."""
SPREADS = 4.0


@dataclass(slots=True)
class Usual:
    """Call unusual() once a second."""

    _count: int = 0
    _mean: float = 0.0
    _variance: float = 0.0

    def unusual(self, value: float, least: float) -> bool:
        """Whether it is at least so much above what it usually is, and beyond its usual spread; then it is remembered,
        but not more of it than that, so that a storm does not count as usual at once."""
        above = max(least, SPREADS * sqrt(self._variance))
        judged = self._count >= LEAST and value >= self._mean + above
        self._learn(min(value, self._mean + above) if self._count >= LEAST else value)
        return judged

    def _learn(self, value: float) -> None:
        self._count = min(self._count + 1, SPAN)
        share = 1 / self._count
        away = value - self._mean
        self._mean += share * away
        self._variance = (1 - share) * (self._variance + share * away * away)
