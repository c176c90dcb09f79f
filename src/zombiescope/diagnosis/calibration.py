"""What a confidence is worth: how often causes with as much evidence turned out to be right.

The strength of a cause (ranking.py) adds up its evidence and orders causes; it is no probability. Here it becomes one,
by what was seen: of the runs in which a cause of such a strength was named first, in how many it was true. Each
band of strengths is one point,

    (right + PRIOR_RUNS x middle) / (runs + PRIOR_RUNS)

so that a band with few runs stays near its strength instead of claiming certainty from three of three. Points that
fall are pooled with their neighbours (more evidence never makes a cause less likely), and between points it is a
straight line. The counts are those of docs/data/calibration.json (cli/lab/calibration.py); a test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from zombiescope.diagnosis.thresholds import CALIBRATION_PRIOR_RUNS, CALIBRATION_STRONGEST


class Band(NamedTuple):
    """Strengths above `least`, up to the next band's."""

    least: float
    right: int
    runs: int


BANDS = (
    Band(0.0, 0, 0),
    Band(0.3, 5, 6),
    Band(0.5, 21, 21),
    Band(0.7, 36, 38),
    Band(0.85, 134, 135),
)
"""Up to 0.5 nothing confirms the cause; above it something that was measured does."""


def calibrated(strength: float) -> float:
    """How likely a cause of this strength is true. Rises with strength."""
    points = [(0.0, 0.0), *_points(BANDS)]
    for (low, at_low), (high, at_high) in pairwise(points):
        if strength <= high:
            return at_low + (at_high - at_low) * (strength - low) / (high - low)
    return points[-1][1]


@cache
def _points(bands: tuple[Band, ...]) -> tuple[tuple[float, float], ...]:
    """(middle of a band, how often it was right), never falling."""
    ends = [*(band.least for band in bands[1:]), CALIBRATION_STRONGEST]
    middles = [(band.least + end) / 2 for band, end in zip(bands, ends, strict=True)]
    sums = [
        (band.right + CALIBRATION_PRIOR_RUNS * at, band.runs + CALIBRATION_PRIOR_RUNS, 1)
        for band, at in zip(bands, middles, strict=True)
    ]
    return tuple(zip(middles, _never_falling(sums), strict=True))


def _never_falling(sums: Sequence[tuple[float, float, int]]) -> list[float]:
    """Pool adjacent violators: (right, runs, bands) of neighbours are added up until no ratio is below the last."""
    pooled: list[tuple[float, float, int]] = []
    for one in sums:
        pooled.append(one)
        while len(pooled) > 1 and pooled[-2][0] / pooled[-2][1] > pooled[-1][0] / pooled[-1][1]:
            last, before = pooled.pop(), pooled.pop()
            pooled.append((before[0] + last[0], before[1] + last[1], before[2] + last[2]))
    return [right / runs for right, runs, bands in pooled for _ in range(bands)]
