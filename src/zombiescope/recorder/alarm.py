"""What is suspicious: cheap sums, judged at every tick, without stacks and without pyarrow.

Suspicious is a core that the kernel holds, a unit that is in the kernel for a CPU's worth, or for half of one for
seconds, a node that is in it for a quarter of its cores and for most of its work or for a CPU more than it usually is,
a real-time task that keeps a core, a full core for which tasks wait while others have room, a cgroup that its CPU quota
stops, cores that interrupt each other all the time or much more than usual, a hole in the samples, and every warning of
the kernel or systemd. Amounts are absolute, whatever the size of the node; totals are judged by what is usual here.

A suspicion is not an incident: the doctor (diagnosis/live.py, a process of its own) looks at the recording and says
what it is. When it looks, and how often at most, is in look_schedule.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from zombiescope.base.baseline import RunningBaseline
from zombiescope.recorder.look_schedule import MOST, LookSchedule
from zombiescope.store.thresholds import (
    CALLS_PER_CORE_PER_S,
    HOG_RATIO,
    HOLE_US,
    MODERATE_RATIO,
    MOSTLY_KERNEL,
    REAL_TIME_RATIO,
    SATURATED_RATIO,
    THROTTLED_PERIODS,
)

MODERATE_S = 4
NODE_OF_ALL = 0.25
"""Of all cores, in the kernel: too much whatever is usual."""
MORE_CALLS_PER_S = 20_000
"""Interrupts with which cores call each other, more than usual: those of two cores that do nothing else."""
CROWD_WAITED, CROWD_FULL, CROWD_ROOM = 0.5, 0.95, 0.7
_NO_ALARM = frozenset(
    {
        "mark", "cgroup_churn", "container_restart", "unit_restart", "clock_step", "lookup_stuck", "helper_failed",
        "pod_restarted", "pod_failed", "pod_evicted", "pod_oom_killed", "rayjob_failed", "raycluster_unhealthy",
    }
)  # fmt: skip
"""What happens on a healthy node too, or is told late by others: whatever is behind it shows by itself."""


@dataclass(slots=True)
class Alarm:
    """Fed at every tick; due() once a second says since when there is something to look at now."""

    schedule: LookSchedule = field(default_factory=LookSchedule)
    _in_a_row: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Name -> (seconds in a row, the last of them)."""
    _node: RunningBaseline = field(default_factory=RunningBaseline)
    _calls: RunningBaseline = field(default_factory=RunningBaseline)

    @property
    def since_us(self) -> int | None:
        return self.schedule.since_us

    def due(self, now_us: int) -> int | None:
        return self.schedule.due(now_us)

    def core(self, now_us: int, cpu: int, interval_us: int, kernel_ms: int | None) -> None:
        if kernel_ms is not None and kernel_ms * 1000 >= SATURATED_RATIO * interval_us and interval_us >= 500_000:
            self.schedule.suspect(now_us, f"core {cpu}")

    def unit(self, now_us: int, name: str, kernel_samples: int, hz: int) -> None:
        """Samples in the kernel since the last call, a second ago."""
        level = kernel_samples / hz
        if level >= HOG_RATIO:
            self.schedule.suspect(now_us, f"unit {name}", level)
        elif level >= MODERATE_RATIO:
            self._lasting(now_us, f"unit {name}", level, weak=True)

    def node(self, now_us: int, samples: int, kernel_samples: int, hz: int, cpus: int) -> None:
        """Samples of all tasks, and those in the kernel, since the last call, a second ago."""
        level = kernel_samples / hz
        mostly = kernel_samples >= MOSTLY_KERNEL * samples
        if self._node.is_unusual(level, HOG_RATIO):
            self._lasting(now_us, "node", level, weak=False)
        if mostly and level >= max(HOG_RATIO, NODE_OF_ALL * cpus):
            self.schedule.suspect(now_us, "node", level)
        elif mostly and level >= max(MODERATE_RATIO, NODE_OF_ALL * cpus):
            self._lasting(now_us, "node", level, weak=True)

    def crowd(self, now_us: int, interval_us: int, busy_ms: list[int], waited_us: int) -> None:
        """One core is full and somebody waits, while all together have room."""
        if not busy_ms or waited_us < CROWD_WAITED * interval_us:
            return
        mean = sum(busy_ms) / len(busy_ms)
        if max(busy_ms) * 1000 >= CROWD_FULL * interval_us and mean * 1000 < CROWD_ROOM * interval_us:
            self._lasting(now_us, "crowd", 0.0, weak=True)

    def real_time(self, now_us: int, name: str, samples: int, hz: int) -> None:
        """Samples of a real-time task since the last call, a second ago."""
        if samples >= REAL_TIME_RATIO * hz:
            self.schedule.suspect(now_us, f"real-time {name}", samples / hz)

    def quota(self, now_us: int, cgroup: str, periods: int, throttled: int) -> None:
        if periods and throttled >= THROTTLED_PERIODS * periods:
            self.schedule.suspect(now_us, f"quota {cgroup}")

    def hole(self, now_us: int, cpu: int, gap_us: int | None) -> None:
        if gap_us is not None and gap_us >= HOLE_US:
            self.schedule.suspect(now_us, f"hole {cpu}")

    def waiting(self, now_us: int, what: str) -> None:
        """Tasks that wait for a thing and do not come back."""
        self.schedule.suspect(now_us, f"waiting {what}")

    def calls(self, now_us: int, count: int, interval_us: int, cpus: int) -> None:
        """How often cores interrupted each other since the last tick."""
        per_s = count * 1_000_000 / interval_us
        if self._calls.is_unusual(per_s, MORE_CALLS_PER_S):
            self._lasting(now_us, "calls", 0.0, weak=False)
        if per_s >= CALLS_PER_CORE_PER_S * cpus:
            self.schedule.suspect(now_us, "calls")

    def hardware(self, now_us: int, what: str) -> None:
        """A counter of errors that stood still has risen."""
        self.schedule.suspect(now_us, what)

    def event(self, now_us: int, kind: str, severity: str) -> None:
        if severity != "info" and kind not in _NO_ALARM:
            self.schedule.suspect(now_us, f"event {kind}")

    def _lasting(self, now_us: int, name: str, level: float, *, weak: bool) -> None:
        """Suspicious when it lasts."""
        seconds, last_us = self._in_a_row.get(name, (0, 0))
        seconds = seconds + 1 if now_us - last_us < 2_500_000 else 1
        if len(self._in_a_row) >= MOST:
            self._in_a_row.clear()
        self._in_a_row[name] = seconds, now_us
        if seconds >= MODERATE_S:
            self.schedule.suspect(now_us, name, level, weak=weak)
