"""When the doctor should look: a cheap suspicion, kept up to date at every tick, without stacks and without pyarrow.

Suspicious is a core that the kernel holds, a unit that is in the kernel for a CPU's worth, or for half of one for
seconds, a node that is in it for a quarter of its cores and for most of its work, a real-time task that keeps a core, a
full core for which tasks wait while others have room, a cgroup that its CPU quota stops, cores that interrupt each
other all the time, a hole in the samples, and every warning of the kernel or systemd. A suspicion is not an incident:
the doctor (diagnosis/live.py, a process of its own) looks at the recording and says what it is. It looks three seconds
after a suspicion arose, then ever more rarely while it lasts, and once more when it is over. A look costs more than a
minute of recording, so a suspicion that turned out to be nothing is not looked at again until something new comes up;
and a unit with half a CPU, or a full core, which many healthy nodes have, once in ten minutes at most.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from zombiescope.recording.saturation import SATURATED_RATIO
from zombiescope.recording.thresholds import (
    CALLS_PER_CORE_PER_S,
    HOG_RATIO,
    HOLE_US,
    MODERATE_OF_ALL,
    MODERATE_RATIO,
    MOSTLY_KERNEL,
    NODE_RATIO,
    REAL_TIME_RATIO,
    THROTTLED_PERIODS,
)

FIRST_LOOK_US = 3_000_000
LOOKS_US = (7_000_000, 20_000_000, 60_000_000, 300_000_000, 600_000_000)
OVER_US = 12_000_000
MODERATE_S = 4
MODERATE_AGAIN_US = 600_000_000
MODERATE_NAMES = 256
CROWD_WAITED, CROWD_FULL, CROWD_ROOM = 0.5, 0.95, 0.7
_NO_ALARM = frozenset(
    {"mark", "cgroup_churn", "container_restart", "unit_restart", "clock_step", "lookup_stuck", "helper_failed"}
)


@dataclass(slots=True)
class Alarm:
    """Call due() once a second; True means look now, at what happened since `since_us`."""

    since_us: int | None = None
    _last_us: int = 0
    _next_us: int = 0
    _looks: int = 0
    _known: set[str] = field(default_factory=set)
    _moderate: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Name -> (seconds in a row, the last of them)."""
    _again_us: dict[str, int] = field(default_factory=dict)

    def core(self, now_us: int, cpu: int, interval_us: int, kernel_ms: int | None) -> None:
        if kernel_ms is not None and kernel_ms * 1000 >= SATURATED_RATIO * interval_us and interval_us >= 500_000:
            self._suspect(now_us, f"core {cpu}")

    def unit(self, now_us: int, name: str, kernel_samples: int, hz: int, cpus: int) -> None:
        """Samples in the kernel since the last call, a second ago."""
        if kernel_samples >= HOG_RATIO * hz:
            self._suspect(now_us, f"unit {name}")
        elif kernel_samples >= max(MODERATE_RATIO, MODERATE_OF_ALL * cpus) * hz:
            self._moderately(now_us, f"unit {name}")

    def node(self, now_us: int, samples: int, kernel_samples: int, hz: int, cpus: int) -> None:
        """Samples of all tasks, and those in the kernel, since the last call, a second ago."""
        if kernel_samples < MOSTLY_KERNEL * samples:
            return
        if kernel_samples >= max(HOG_RATIO, NODE_RATIO * cpus) * hz:
            self._suspect(now_us, "node")
        elif kernel_samples >= max(MODERATE_RATIO, NODE_RATIO * cpus) * hz:
            self._moderately(now_us, "node")

    def crowd(self, now_us: int, interval_us: int, busy_ms: list[int], waited_us: int) -> None:
        """One core is full and somebody waits, while all together have room."""
        if not busy_ms or waited_us < CROWD_WAITED * interval_us:
            return
        mean = sum(busy_ms) / len(busy_ms)
        if max(busy_ms) * 1000 >= CROWD_FULL * interval_us and mean * 1000 < CROWD_ROOM * interval_us:
            self._moderately(now_us, "crowd")

    def real_time(self, now_us: int, name: str, samples: int, hz: int) -> None:
        """Samples of a real-time task since the last call, a second ago."""
        if samples >= REAL_TIME_RATIO * hz:
            self._suspect(now_us, f"real-time {name}")

    def quota(self, now_us: int, cgroup: str, periods: int, throttled: int) -> None:
        if periods and throttled >= THROTTLED_PERIODS * periods:
            self._suspect(now_us, f"quota {cgroup}")

    def hole(self, now_us: int, cpu: int, gap_us: int | None) -> None:
        if gap_us is not None and gap_us >= HOLE_US:
            self._suspect(now_us, f"hole {cpu}")

    def calls(self, now_us: int, count: int, interval_us: int, cpus: int) -> None:
        """How often cores interrupted each other since the last tick."""
        if count * 1_000_000 >= CALLS_PER_CORE_PER_S * cpus * interval_us:
            self._suspect(now_us, "calls")

    def event(self, now_us: int, kind: str, severity: str) -> None:
        if severity != "info" and kind not in _NO_ALARM:
            self._suspect(now_us, f"event {kind}")

    def _moderately(self, now_us: int, what: str) -> None:
        """Suspicious when it lasts; then it stays so while it goes on, and for ten minutes afterwards is known."""
        seconds, last_us = self._moderate.get(what, (0, 0))
        seconds = seconds + 1 if now_us - last_us < 2_500_000 else 1
        if len(self._moderate) >= MODERATE_NAMES:
            self._moderate.clear()
        self._moderate[what] = seconds, now_us
        if seconds < MODERATE_S or (what not in self._known and now_us < self._again_us.get(what, 0)):
            return
        if len(self._again_us) >= MODERATE_NAMES:
            self._again_us.clear()
        self._again_us[what] = now_us + MODERATE_AGAIN_US
        self._suspect(now_us, what)

    def _suspect(self, now_us: int, what: str) -> None:
        if self.since_us is None:
            self.since_us, self._looks = now_us, 0
            self._next_us = now_us + FIRST_LOOK_US
        elif what not in self._known:
            self._next_us = min(self._next_us, now_us + FIRST_LOOK_US)
        self._known.add(what)
        self._last_us = now_us

    def due(self, now_us: int) -> bool:
        if self.since_us is None:
            return False
        if now_us - self._last_us >= OVER_US:
            self._clear()
            return True
        if now_us < self._next_us:
            return False
        self._next_us = now_us + LOOKS_US[min(self._looks, len(LOOKS_US) - 1)]
        self._looks += 1
        return True

    def _clear(self) -> None:
        self.since_us = None
        self._known.clear()
