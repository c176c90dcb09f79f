"""What the alarm is fed: cores, holes, calls and waiting at every tick, what tasks used every second, events when they
happen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from zombiescope.recorder.alarm import Alarm
from zombiescope.recorder.counters import Counters
from zombiescope.recorder.sample_writer import TaskShare
from zombiescope.recorder.tick import Tick
from zombiescope.store.event import Event

LONG_GAP_US = 900_000
GAP_SLACK_US = 50_000
ALIKE_RATIO = 0.8


class AlarmFeed:
    def __init__(self, alarm: Alarm, counters: Counters, hz: int, started_us: int) -> None:
        self._alarm = alarm
        self._counters = counters
        self._hz = hz
        self._started_us = started_us
        self._unseen_us: dict[int, int] = {}

    def tick(self, tick: Tick) -> None:
        """After cores and counters were read."""
        alarm, wall_us, interval_us = self._alarm, tick.wall_us, tick.interval_us
        for core in tick.times:
            alarm.core(wall_us, core.cpu, interval_us, core.kernel_ms)
        self._holes(tick)
        for suspect in self._counters.take_suspects():
            alarm.hardware(wall_us, suspect)
        alarm.calls(wall_us, self._counters.take_calls(), interval_us, len(tick.online))
        alarm.crowd(wall_us, interval_us, [core.busy_ms for core in tick.times], self._counters.take_waited_us())

    def _holes(self, tick: Tick) -> None:
        """Some machines take no sample of an idle core; idle time that was not seen, in this tick or the one before,
        explains a gap. So do records that we lost (the kernel may report them a tick later: then the doctor looks and
        finds nothing), and a tick of ours that came late."""
        busy_us = {core.cpu: core.busy_ms * 1000 for core in tick.times}
        before, self._unseen_us = self._unseen_us, {}
        for cpu, (got, idle, gap_ns, lost) in tick.sampled.items():
            gap_us = (gap_ns or 0) // 1000
            seen_us = idle * 1_000_000 // self._hz
            unseen_us = max(0, tick.interval_us - busy_us.get(cpu, tick.interval_us) - seen_us)
            self._unseen_us[cpu] = unseen_us
            if lost or self._came_late(tick, got, gap_us):
                continue  # our own
            if unseen_us + before.get(cpu, 0) < min(gap_us, LONG_GAP_US) - GAP_SLACK_US:
                self._alarm.hole(tick.wall_us, cpu, gap_us)

    def _came_late(self, tick: Tick, got: int, gap_us: int) -> bool:
        """We were late, and the samples of the hole are there nevertheless."""
        missing_us = tick.interval_us - got * 1_000_000 // self._hz
        return tick.late_us >= ALIKE_RATIO * gap_us and 2 * missing_us < gap_us

    def quotas(self, wall_us: int, limited: Iterable[tuple[str, int, int]]) -> None:
        """Cgroups with a CPU quota: path, periods, periods in which it was stopped."""
        for path, periods, throttled in limited:
            self._alarm.quota(wall_us, path, periods, throttled)

    def shares(self, now_us: int, shares: Iterable[TaskShare], cpus: int) -> None:
        """What tasks had of the CPU since the last call, a second ago."""
        in_kernel: Counter[str] = Counter()
        total = 0
        for share in shares:
            in_kernel[share.name] += share.kernel
            total += share.samples
            if share.real_time:
                self._alarm.real_time(now_us, share.name, share.samples, self._hz)
        for name, kernel in in_kernel.items():
            self._alarm.unit(now_us, name, kernel, self._hz)
        self._alarm.node(now_us, total, in_kernel.total(), self._hz, cpus)

    def suspects(self) -> bool:
        """Whether there is a suspicion now that is not a weak one."""
        return any(not each.weak for each in self._alarm.schedule.alive.values())

    def waiting(self, now_us: int, what: str) -> None:
        self._alarm.waiting(now_us, what)

    def event(self, event: Event) -> None:
        if event.at_us >= self._started_us:  # what the kernel said before is history, not news
            self._alarm.event(event.at_us, event.kind, event.severity)
