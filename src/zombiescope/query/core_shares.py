"""The modes of one core as parts of one time: they never add up to more than all of it.

/proc/stat counts timer ticks, and a core that had its interrupts off is given the ticks that it missed when they are on
again: of such a second a core reads 1.16 s. What the kernel took stands as it is, up to the whole; it is what this is
about, and whether a core was lost is decided by it (store/thresholds.py). Programs and stolen time share what is
left, and idleness the rest. The one rule: `cores`, `top`, `check`, the strip and the worst second say what is computed
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from zombiescope.store.thresholds import KERNEL_MODES

ORDER = (KERNEL_MODES, ("user", "nice", "steal"), ("iowait", "idle"))
Share = TypeVar("Share")
"""A number, or an array of them."""


def fitted(
    shares: Mapping[str, Share], whole: float = 1.0, *, lower: Callable[[Any, Any], Any] = min
) -> dict[str, Share]:
    """The same modes, each group of them scaled down to what the groups before it leave. Arrays need `np.minimum` as
    `lower`."""
    made: dict[str, Any] = dict(shares)
    room: Any = whole
    for modes in ORDER:
        known = [mode for mode in modes if mode in made]
        total: Any = sum(made[mode] for mode in known)
        fits = lower(total, room)
        for mode in known:
            made[mode] = made[mode] * (fits / (total + (total == 0)))
        room = room - fits
    return made
