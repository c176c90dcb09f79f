"""How often a busy core was sampled: what makes CPUs of samples, and time of a cell.

A recording says it. An import may not: then it is seen in the samples, if most gaps between two of one core agree on
one period. A row that stands for several samples has no rate.
"""

from __future__ import annotations

import numpy as np

from zombiescope.base.time import SECOND_US
from zombiescope.query.selection import ImportFacts, Selection

_FEWEST_GAPS, _MOST_LOOKED_AT = 50, 200_000
_AGREES, _MOST = 0.12, 0.8
"""How far from a whole multiple a gap may be, and how many must be no further; by chance a quarter would."""


def period_us(selection: Selection) -> float | None:
    """The time that a sample stands for; None where that is not known."""
    if ImportFacts.of(selection.recording).weighted:
        return None
    hz = selection.recording.node.get("hz")
    return 1e6 / hz if isinstance(hz, int | float) and hz > 0 else _usual_gap_us(selection)


def rate(selection: Selection) -> float | None:
    """Samples a second."""
    period = period_us(selection)
    return None if period is None else 1e6 / period


def _usual_gap_us(selection: Selection) -> float | None:
    for time_us, cpu in selection.columns("time", "cpu"):
        if len(time_us) < _FEWEST_GAPS:
            continue
        some = slice(0, _MOST_LOOKED_AT)
        order = np.lexsort((time_us[some], cpu[some]))
        gaps = np.diff(time_us[some][order])[np.diff(cpu[some][order]) == 0]
        gaps = gaps[(gaps > 0) & (gaps < SECOND_US // 10)]
        if len(gaps) < _FEWEST_GAPS:
            return None
        # A core that is not always busy skips some: gaps are whole multiples of the period.
        least = float(np.percentile(gaps, 10))
        times = np.round(gaps / least)
        agree = np.abs(gaps / least - times) <= _AGREES
        once = gaps[agree & (times == 1)]
        return float(once.mean()) if agree.mean() > _MOST and len(once) else None
    return None
