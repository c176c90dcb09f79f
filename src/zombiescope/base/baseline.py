"""What a number usually is on this node, and whether a value stands out of that.

A healthy node of 192 cores spends more time in the kernel than a sick one of two has altogether, so a total is judged
by what it was before. `Baseline` is a level and a spread: of readings that are all there (`Baseline.of`), or of a
number that comes second by second (`RunningBaseline`, which the recorder and the agent feed). Without numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

DEVIATIONS_OF_MEDIAN = 1.4826
"""A median absolute deviation times this is the standard deviation of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Baseline:
    level: float
    spread: float = 0.0

    @classmethod
    def of(cls, values: Iterable[float], percentile: float = 50.0) -> Baseline:
        """The level is that percentile of the values (one at least); the spread is around their median."""
        ordered = sorted(values)
        middle = _median(ordered)
        level = middle if percentile == 50.0 else _percentile(ordered, percentile)
        return cls(level, DEVIATIONS_OF_MEDIAN * _median(sorted(abs(value - middle) for value in ordered)))

    def excess(self, value: float, spreads: float, least: float = 0.0) -> float:
        """How far it is above, if that is `least` and so many spreads at least; 0 otherwise."""
        above = value - self.level
        return above if above >= max(least, spreads * self.spread) else 0.0


@dataclass(slots=True)
class RunningBaseline:
    """Mean and standard deviation over about `span` values; what stays high for that long becomes usual."""

    span: int = 300
    learned_after: int = 30
    """Values after which it judges."""
    mean: float = 0.0
    _variance: float = 0.0
    _count: int = 0

    @property
    def is_learned(self) -> bool:
        return self._count >= self.learned_after

    def is_unusual(self, value: float, least: float, spreads: float = 4.0) -> bool:
        """Whether it is at least so much above the mean, and beyond the spread; then it is learned, but not more of it
        than that, so that a storm does not become usual at once."""
        if not self.is_learned:
            self.learn(value)
            return False
        highest = self.mean + max(least, spreads * sqrt(self._variance))
        unusual = value >= highest
        self.learn(min(value, highest))
        return unusual

    def learn(self, value: float) -> None:
        self._count = min(self._count + 1, max(self.span, self.learned_after))
        share = 1 / min(self._count, self.span)
        away = value - self.mean
        self.mean += share * away
        self._variance = (1 - share) * (self._variance + share * away * away)


def percentile(values: Iterable[float], at: float) -> float:
    """Interpolated between neighbours, as numpy does it, to the last bit."""
    return _percentile(sorted(values), at)


def _percentile(ordered: Sequence[float], at: float) -> float:
    place = (len(ordered) - 1) * (at / 100)
    below = int(place)
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    part = place - below
    return high - (high - low) * (1 - part) if part >= 0.5 else low + (high - low) * part


def _median(ordered: Sequence[float]) -> float:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
