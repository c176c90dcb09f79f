"""The last minutes of a node, held in memory from the frames of a live recording: what a terminal or a page
shows now.

Fed frame by frame (see tail.py), without numpy or pyarrow. Ratios are of elapsed time: /proc/stat loses ticks
while interrupts are off, so the fields of a core need not add up to one. A core without a row in a tick was
offline or not measured then; it has no CoreTick, never one of zeros.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from zombiescope.base.time import MINUTE_US, SECOND_US
from zombiescope.model.modes import DRAWN_MODES
from zombiescope.query.core_shares import fitted
from zombiescope.query.cost import Cost, cost_of
from zombiescope.query.events import of_frame
from zombiescope.query.trend import growth
from zombiescope.store.event import Event
from zombiescope.store.log import Block, LogFrame
from zombiescope.store.thresholds import JUDGED_OVER_US, SATURATED_RATIO, ticks_judged_together

_EVENTS_KEPT = 200
_CENSUS_KEPT = 50_000
"""Half a day at one a second; they are small."""
_COST_SPAN_US = MINUTE_US


@dataclass(frozen=True, slots=True)
class CoreTick:
    """How one core, or the mean of all, spent one tick; `user` includes nice.

    A mode of a short tick may read above one (time is accounted in timer ticks); what it adds up to over
    several ticks is right, so it is fitted into the time (core_shares.py) only where half a second or more is one.
    """

    user: float
    system: float
    irq: float
    softirq: float
    steal: float
    iowait: float

    @property
    def kernel(self) -> float:
        return min(1.0, self.system + self.irq + self.softirq)

    @property
    def busy(self) -> float:
        return min(1.0, self.user + self.system + self.irq + self.softirq + self.steal)

    def mode(self) -> str:
        """The mode that took most of the busy time."""
        modes = ("system", "softirq", "user", "irq", "steal")
        return max(modes, key=lambda mode: float(getattr(self, mode)))


@dataclass(frozen=True, slots=True)
class NodeTick:
    """All cores over one tick that ends at `at_us`."""

    at_us: int
    interval_us: int
    cores: dict[int, CoreTick]

    def average(self) -> CoreTick | None:
        """What a dashboard would show: the mean over the cores."""
        return mean(list(self.cores.values()))


@dataclass(frozen=True, slots=True)
class Hottest:
    """The core with the most kernel time in the newest tick, and for how long it has been saturated without a
    break."""

    cpu: int
    tick: CoreTick
    saturated_s: float


@dataclass(frozen=True, slots=True)
class CgroupCount:
    """Memory cgroups at one moment; None is not measured."""

    at_us: int
    total: int | None
    live: int | None
    dying: int | None
    hierarchy: str | None = None
    created: int | None = None
    """Since the recorder started."""


@dataclass(frozen=True, slots=True)
class TopLeak:
    path: str
    dying: int
    comm: str | None
    unit: str | None


@dataclass(frozen=True, slots=True)
class GpuTick:
    """One GPU over the second that ends at `at_us`; None is not measured."""

    at_us: int
    utilisation: int | None
    power_w: int | None
    temperature_c: int | None


class Recent:
    """The newest `keep_s` seconds of one node."""

    def __init__(self, keep_s: float = 600) -> None:
        self._keep_us = int(keep_s * 1e6)
        self.ticks: deque[NodeTick] = deque()
        self.events: deque[Event] = deque(maxlen=_EVENTS_KEPT)
        self._census: dict[str | None, deque[CgroupCount]] = {}
        self._leaks: dict[str, TopLeak] = {}
        self._gpus: dict[int, dict[int, GpuTick]] = {}
        self.gpu_states: dict[int, tuple[str | None, str | None]] = {}
        """Number -> name and state."""
        self._costs: deque[tuple[int, dict[str, Any]]] = deque()
        self._lost = 0
        self._saturated_us: dict[int, int] = {}
        self._unjudged: list[NodeTick] = []
        self.newest_us: int | None = None

    def update(self, frame: LogFrame) -> None:
        """Take in one frame; frames come in the order they were written."""
        takes = {
            "cores": self._take_cores,
            "census": self._take_census,
            "leaks": self._take_leaks,
            "cost": self._take_cost,
            "gpu_seconds": self._take_gpu_seconds,
            "gpus": self._take_gpus,
        }
        for block in frame.blocks:
            if take := takes.get(block.table.name):
                take(block)
        self.events.extend(of_frame(frame))
        self.newest_us = frame.wall_us
        self._forget(frame.wall_us - self._keep_us)

    # --- questions ---------------------------------------------------------------------------------------------------

    def hottest(self) -> Hottest | None:
        """None before the first tick."""
        if not self.ticks or not self.ticks[-1].cores:
            return None
        cores = self.ticks[-1].cores
        cpu = max(cores, key=lambda cpu: (self._saturated_us.get(cpu, 0), cores[cpu].kernel, cores[cpu].busy, -cpu))
        return Hottest(cpu, cores[cpu], self._saturated_us.get(cpu, 0) / 1e6)

    def slots(self, count: int) -> list[NodeTick | None]:
        """The newest ticks as equal steps of time, newest last, at most `count`; None where nothing was
        recorded.

        Ticks of half a second or less are joined to whole seconds, so that a step is a second or a tick.
        """
        if not self.ticks:
            return []
        joined = self._joined(count)
        steps: list[NodeTick | None] = []
        for before, tick in zip([None, *joined], joined, strict=False):
            if before is not None:
                missing = round((tick.at_us - before.at_us) / max(tick.interval_us, 1)) - 1
                steps.extend([None] * min(max(missing, 0), count))
            steps.append(tick)
        return steps[-count:]

    def _joined(self, count: int) -> list[NodeTick]:
        interval_us = self.ticks[-1].interval_us
        per_slot = max(1, SECOND_US // max(interval_us, 1))
        newest = list(islice(reversed(self.ticks), count * per_slot + per_slot))[::-1]
        if per_slot == 1:
            return newest[-count:]
        seconds: dict[int, list[NodeTick]] = {}
        for tick in newest:
            seconds.setdefault((tick.at_us - 1) // SECOND_US, []).append(tick)
        joined = [_join(ticks, (second + 1) * SECOND_US, SECOND_US) for second, ticks in seconds.items()]
        return joined[-count:]

    def cpus(self) -> list[int]:
        """Every core seen in the time that is kept, in the kernel's order."""
        return sorted(set[int]().union(*(tick.cores for tick in self.ticks)))

    def census(self) -> CgroupCount | None:
        counted = self._counted()
        return counted[-1] if counted else None

    def dying_per_hour(self) -> float | None:
        """How fast zombies grow, as trend.py has it; None until a minute was seen, and for a minute after a purge."""
        rows = list(self._counted())
        return growth([row.at_us for row in rows], [row.dying for row in rows], [row.created for row in rows])

    def _counted(self) -> deque[CgroupCount]:
        """The hierarchy that has most memory cgroups; a hybrid node has two."""
        return max(self._census.values(), key=lambda rows: rows[-1].total or 0, default=deque())

    def remember(self, rows: Iterable[CgroupCount]) -> None:
        """What was counted before the first frame: growth is that of the recording, not of the minutes held here."""
        for row in rows:
            kept = self._census.setdefault(row.hierarchy, deque(maxlen=_CENSUS_KEPT))
            if not kept or row.at_us > kept[-1].at_us:
                kept.append(row)

    def top_leak(self) -> TopLeak | None:
        """The path with the most zombies; the tail's sum (path "") is nobody."""
        named = [leak for leak in self._leaks.values() if leak.path and leak.dying > 0]
        return max(named, key=lambda leak: leak.dying, default=None)

    def gpus(self) -> list[int]:
        return sorted({*self._gpus, *self.gpu_states})

    def gpu_slots(self, gpu: int, count: int) -> list[GpuTick | None]:
        """The newest seconds of a GPU, newest last; None where nothing was measured. Rows come seconds late, so what
        has not come yet is not there."""
        ticks = self._gpus.get(gpu)
        if not ticks:
            return []
        newest_us, oldest_us = max(ticks), min(ticks)
        first_us = max(oldest_us, newest_us - (count - 1) * SECOND_US)
        return [ticks.get(at_us) for at_us in range(first_us, newest_us + 1, SECOND_US)]

    def cost(self) -> Cost | None:
        """Rates over the last minute, losses since the beginning."""
        cost = cost_of([at_us for at_us, _ in self._costs], [row for _, row in self._costs])
        return None if cost is None else replace(cost, lost=self._lost)

    # --- frames ------------------------------------------------------------------------------------------------------

    def _take_cores(self, block: Block) -> None:
        by_time: dict[tuple[int, int], dict[int, CoreTick]] = {}
        times, intervals, cpus = (block.column(name) for name in ("time", "interval_us", "cpu"))
        modes = [block.column(f"{mode}_ms") for mode in ("user", "nice", "system", "irq", "softirq", "steal", "iowait")]
        for row in range(block.rows):
            core = core_tick([mode[row] for mode in modes], intervals[row])
            if core is not None:
                by_time.setdefault((times[row], intervals[row]), {})[cpus[row]] = core
        for (at_us, interval_us), cores in sorted(by_time.items()):
            tick = NodeTick(at_us, interval_us, cores)
            self._judge(tick)
            self.ticks.append(tick)

    def _judge(self, tick: NodeTick) -> None:
        """Count for how long each core has been saturated; a hole in time ends every count."""
        if self.ticks and tick.at_us - self.ticks[-1].at_us > 3 * tick.interval_us:
            self._saturated_us.clear()
            self._unjudged.clear()
        self._unjudged.append(tick)
        if len(self._unjudged) < ticks_judged_together(tick.interval_us):
            return
        judged = _join(self._unjudged, tick.at_us, sum(one.interval_us for one in self._unjudged))
        self._unjudged.clear()
        before = self._saturated_us
        self._saturated_us = {
            cpu: before.get(cpu, 0) + judged.interval_us
            for cpu, core in judged.cores.items()
            if core.kernel >= SATURATED_RATIO
        }

    def _take_census(self, block: Block) -> None:
        columns = [block.column(name) for name in ("time", "total", "live", "dying", "hierarchy", "created")]
        self.remember(CgroupCount(*row) for row in zip(*columns, strict=True))

    def _take_leaks(self, block: Block) -> None:
        columns = [block.column(name) for name in ("path", "dying", "comm", "unit")]
        for path, dying, comm, unit in zip(*columns, strict=True):
            self._leaks[path or ""] = TopLeak(path or "", dying or 0, comm, unit)

    def _take_gpu_seconds(self, block: Block) -> None:
        names = ("gpu", "time", "utilisation", "power_w", "temperature_c")
        for gpu, at_us, *figures in zip(*(block.column(name) for name in names), strict=True):
            self._gpus.setdefault(gpu, {})[at_us] = GpuTick(at_us, *figures)

    def _take_gpus(self, block: Block) -> None:
        for gpu, name, state in zip(*(block.column(name) for name in ("gpu", "name", "state")), strict=True):
            self.gpu_states[gpu] = (name, state)

    def _take_cost(self, block: Block) -> None:
        names = ("cpu_us", "helper_cpu_us", "rss_bytes", "log_bytes", "lost")
        columns = {name: block.column(name) for name in names}
        for row, at_us in enumerate(block.column("time")):
            self._costs.append((at_us, {name: column[row] for name, column in columns.items()}))
            self._lost += columns["lost"][row] or 0

    def _forget(self, before_us: int) -> None:
        while self.ticks and self.ticks[0].at_us < before_us:
            self.ticks.popleft()
        for ticks in self._gpus.values():
            while ticks and (oldest_us := next(iter(ticks))) < before_us:
                del ticks[oldest_us]
        while len(self._costs) > 1 and self._costs[0][0] < self._costs[-1][0] - _COST_SPAN_US:
            self._costs.popleft()


def heat(slots: Sequence[NodeTick | None]) -> dict[int, float]:
    """Per core, how much it stood out. Squares make six saturated seconds weigh more than a minute at a
    third; user time counts for a quarter, because a core that computes is a core that works."""
    heat: dict[int, float] = {}
    for tick in slots:
        for cpu, core in tick.cores.items() if tick is not None else ():
            heat[cpu] = heat.get(cpu, 0.0) + core.kernel**2 + core.busy**2 / 4
    return heat


def core_tick(mode_ms: Sequence[int | None], interval_us: int | None) -> CoreTick | None:
    """A core's tick from user, nice, system, irq, softirq, steal and iowait; None when it was not
    measured."""
    user, nice, system, *rest = mode_ms
    if not interval_us or user is None or system is None:
        return None
    scale = 1000 / interval_us
    user_and_nice = user + (nice or 0)
    ratios = [max(0.0, (ms or 0) * scale) for ms in (user_and_nice, system, *rest)]
    if interval_us < JUDGED_OVER_US:  # of several such ticks the sum is right, of one alone it is not
        return CoreTick(*ratios)
    return CoreTick(**fitted(dict(zip(DRAWN_MODES, ratios, strict=True))))


def mean(ticks: Sequence[CoreTick]) -> CoreTick | None:
    """The mean of several ticks, over cores or over time."""
    if not ticks:
        return None
    return CoreTick(**fitted({name: sum(getattr(tick, name) for tick in ticks) / len(ticks) for name in DRAWN_MODES}))


def _join(ticks: Sequence[NodeTick], at_us: int, interval_us: int) -> NodeTick:
    """Several ticks as one that ends at `at_us`."""
    if len(ticks) == 1:
        return NodeTick(at_us, interval_us, ticks[0].cores)
    cpus = {cpu for tick in ticks for cpu in tick.cores}
    means = {cpu: mean([tick.cores[cpu] for tick in ticks if cpu in tick.cores]) for cpu in cpus}
    return NodeTick(at_us, interval_us, {cpu: core for cpu, core in means.items() if core is not None})
