"""Where a count began to be what it is: after the last purge, or after whoever counts was started again.

Growth across a purge is the growth of something that is over: 12,000 zombies made in half a minute and released read
+292,526 an hour beside 17 that were left.
"""

from __future__ import annotations

from collections.abc import Sequence

PURGED_LEAST = 100
PURGED_SHARE = 0.1
"""Of what there was: fewer come and go on any node."""


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
