"""Wall time for monotonic stamps.

Every record is stamped with CLOCK_MONOTONIC, which no one can set. What people know is wall time, so each stored time
is monotonic plus an offset. The offset is read again before each use; it changes only when somebody sets the clock (a
slew by NTP bends both clocks alike), or when the machine was suspended, while which the monotonic clock stands. Then
what was recorded before keeps the old offset and what comes after gets the new one: data is not bent. That the clock
was set becomes an event; the time for which the machine slept, which CLOCK_BOOTTIME has counted, a gap."""

from __future__ import annotations

import time
from dataclasses import dataclass

from zombiescope.store.event import Event

_STEP_NS = 50_000_000  # a read of two clocks may be torn apart by a late wake-up, but not by this much


@dataclass(frozen=True, slots=True)
class Step:
    before_us: int
    after_us: int
    slept_us: int = 0
    """Of it, for how long the machine was suspended."""

    @property
    def seconds(self) -> float:
        """By how much somebody set the clock."""
        return (self.after_us - self.before_us - self.slept_us) / 1e6

    def event(self, now_us: int) -> Event | None:
        if abs(self.seconds) * 1e9 <= _STEP_NS:
            return None
        text = f"the clock was set {abs(self.seconds):.3f} s {'forward' if self.seconds > 0 else 'back'}"
        fields = {"seconds": self.seconds, "before_us": self.before_us, "after_us": self.after_us}
        return Event(now_us, "clock_step", "recorder", "warning", text, fields)

    def gap(self) -> tuple[int, int, str, str] | None:
        """A row of `gaps`. Where the clock was set as well, nobody knows when, and the time before it counts."""
        if not self.slept_us:
            return None
        why = f"the machine was suspended for {self.slept_us / 1e6:.1f} s"
        return self.before_us, self.before_us + self.slept_us, "ticks", why


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


def read_slept_ns() -> int:
    """For how long the machine has been suspended since it was booted."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class WallClock:
    """The offset in use. `adopt` is called between flushes, so that one flush never mixes two offsets."""

    def __init__(self) -> None:
        self.offset_ns = self._first_ns = read_offset_ns()
        self._slept_ns = read_slept_ns()

    def now_us(self) -> int:
        return self.wall_us(time.clock_gettime_ns(time.CLOCK_MONOTONIC))

    def wall_us(self, monotonic_ns: int) -> int:
        return (monotonic_ns + self.offset_ns) // 1000

    def certain_us(self, wall_us: int) -> int:
        """The earliest that it may be by what the clock has said since the start. One that is a day ahead for a
        minute must not make everything a day older."""
        return wall_us - max(0, self.offset_ns - self._first_ns) // 1000

    def stepped(self) -> bool:
        """Has somebody set the clock since the offset was adopted?"""
        return abs(read_offset_ns() - self.offset_ns) > _STEP_NS

    def adopt(self) -> Step | None:
        """Takes the present offset; tells the step if there was one."""
        offset = read_offset_ns()
        if abs(offset - self.offset_ns) <= _STEP_NS:
            return None
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        slept = self._newly_slept_ns()
        step = Step((now + self.offset_ns) // 1000, (now + offset) // 1000, slept // 1000)
        self.offset_ns = offset
        return step

    def _newly_slept_ns(self) -> int:
        """That time has passed for certain, whatever is said of the rest."""
        slept = read_slept_ns() - self._slept_ns
        if slept <= _STEP_NS:
            return 0
        self._slept_ns += slept
        self._first_ns += slept
        return slept
