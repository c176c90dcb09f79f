"""How fast a count grows, and where it began to be what it is: after the last purge, or after whoever counts was
started again. The one growth: `cgroups`, `top`, the page and `diagnose` say what is computed here.

Growth across a purge is the growth of something that is over: 12,000 zombies made in half a minute and released read
+292,526 an hour beside 17 that were left.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from zombiescope.base.time import HOUR_US, MINUTE_US

PURGED_LEAST = 100
PURGED_SHARE = 0.1
"""Of what there was: fewer come and go on any node."""
SHORTEST_US = MINUTE_US
POINTS = 64
"""Of a long time, so many are compared with each other."""


def per_hour(times_us: Sequence[int], values: Sequence[int]) -> float | None:
    """The median of the slopes between all pairs of points since the last purge: the two ends alone are whatever came
    or went in their seconds. None below a minute."""
    begin = since_purge(values)
    times_us, values = times_us[begin:], values[begin:]
    if len(times_us) < 2 or times_us[-1] - times_us[0] < SHORTEST_US:
        return None
    last = len(times_us) - 1
    chosen = sorted({step * last // (POINTS - 1) for step in range(POINTS)})
    slopes = [
        (values[later] - values[earlier]) * HOUR_US / (times_us[later] - times_us[earlier])
        for place, earlier in enumerate(chosen)
        for later in chosen[place + 1 :]
        if times_us[later] > times_us[earlier]
    ]
    return float(median(slopes))


def growth(times_us: Sequence[int], values: Sequence[int | None], counted: Sequence[int | None]) -> float | None:
    """Of a count as one recorder saw it; `counted` only grows while that runs."""
    begin = since_restart(counted)
    known = [(at_us, value) for at_us, value in zip(times_us[begin:], values[begin:], strict=True) if value is not None]
    return per_hour([at_us for at_us, _ in known], [value for _, value in known])


def since_purge(values: Sequence[int]) -> int:
    """The place from which on nothing was purged: the lowest value after the last time that many went at once."""
    lowest, place = None, 0
    for at in range(len(values) - 1, -1, -1):
        value = values[at]
        if lowest is not None and value - lowest >= max(PURGED_LEAST, PURGED_SHARE * value):
            return place
        if lowest is None or value <= lowest:
            lowest, place = value, at
    return 0


def since_restart(counted: Sequence[int | None]) -> int:
    """The place from which on one recorder counted: `counted` only grows while it runs. None says nothing."""
    last: int | None = None
    for at in range(len(counted) - 1, -1, -1):
        value = counted[at]
        if value is None:
            continue
        if last is not None and value > last:
            return at + 1
        last = value
    return 0
