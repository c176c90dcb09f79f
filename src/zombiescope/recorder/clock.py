"""Wall time for monotonic stamps.

Every record is stamped with CLOCK_MONOTONIC, which no one can set. What people know is wall time, so each stored time
is monotonic plus an offset. The offset is read again before each use; it changes only when somebody sets the clock (a
slew by NTP bends both clocks alike). Then what was recorded before keeps the old offset and what comes after gets the
new one: data is not bent, and the step itself becomes an event."""

from __future__ import annotations

import time
from dataclasses import dataclass

_STEP_NS = 50_000_000  # a read of two clocks may be torn apart by a late wake-up, but not by this much


@dataclass(frozen=True, slots=True)
class Step:
    before_us: int
    after_us: int

    @property
    def seconds(self) -> float:
        return (self.after_us - self.before_us) / 1e6


def read_offset_ns() -> int:
    """Wall clock minus monotonic clock: of a few tries the one whose two readings lay closest together."""
    best_spread, best = 1 << 62, 0
    for _ in range(3):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        wall = time.clock_gettime_ns(time.CLOCK_REALTIME)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if after - before < best_spread:
            best_spread, best = after - before, wall - (before + after) // 2
    return best


class WallClock:
    """The offset in use. `adopt` is called between flushes, so that one flush never mixes two offsets."""

    def __init__(self) -> None:
        self.offset_ns = read_offset_ns()

    def now_us(self) -> int:
        return self.wall_us(time.clock_gettime_ns(time.CLOCK_MONOTONIC))

    def wall_us(self, monotonic_ns: int) -> int:
        return (monotonic_ns + self.offset_ns) // 1000

    def stepped(self) -> bool:
        """Has somebody set the clock since the offset was adopted?"""
        return abs(read_offset_ns() - self.offset_ns) > _STEP_NS

    def adopt(self) -> Step | None:
        """Takes the present offset; tells the step if there was one."""
        offset = read_offset_ns()
        if abs(offset - self.offset_ns) <= _STEP_NS:
            return None
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        step = Step((now + self.offset_ns) // 1000, (now + offset) // 1000)
        self.offset_ns = offset
        return step
