"""Memory cgroups: how many, how fast they leak, who leaks them, and when that will hurt."""

from __future__ import annotations

from collections import deque

from zombiescope.agent.metrics import families
from zombiescope.agent.tally import OTHER, Tally
from zombiescope.query.memcg_cost import LEAF_GAUGES, LeafCost, Load, judge
from zombiescope.query.trend import since_purge
from zombiescope.store import schema
from zombiescope.store.log import Block

WINDOW_US = 600 * 1_000_000
LEAST_US = 60 * 1_000_000
PATHS = 4096
"""Lines of the ledger that are kept here; it has its own bound."""


class CgroupsAccount:
    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._census: deque[tuple[int, int]] = deque(maxlen=1200)
        self._load: tuple[int, int, int | None, int | None] | None = None
        self._before: dict[str, int] = {}
        self._leaks: dict[str, tuple[str, int]] = {}
        self._probes: dict[int, str] = {}
        self._leaf: dict[str, int] = {}
        self.kernel: str | None = None

    def update(self, block: Block, counted: bool) -> None:
        if block.table is schema.CENSUS:
            self._take_census(block, counted)
        elif block.table is schema.LEAKS:
            self._take_leaks(block)
        elif block.table is schema.SERIES:
            rows = zip(*(block.column(name) for name in ("series", "source", "name")), strict=True)
            self._probes |= {number: name for number, source, name in rows if source == "probe"}
        elif block.table is schema.COUNTERS and self._probes:
            for number, value in zip(block.column("series"), block.column("value"), strict=True):
                if number in self._probes and value is not None:
                    self._leaf[self._probes[number]] = value

    def end_segment(self) -> None:
        self._probes.clear()

    def begin_run(self) -> None:
        """Another recorder counts from nothing."""
        self._before.clear()
        self._leaks.clear()

    def _take_census(self, block: Block, counted: bool) -> None:
        names = ("time", "total", "live", "dying", "created", "released")
        for at_us, total, live, dying, created, released in zip(*(block.column(n) for n in names), strict=True):
            self._gained(families.CREATED, created, counted)
            self._gained(families.RELEASED, released, counted)
            if dying is not None:
                self._census.append((at_us, dying))
            if total is not None:
                self._load = (at_us, total, live, dying)
            self._tally.set(families.CGROUPS, live, "memory", "visible")
            self._tally.set(families.CGROUPS, dying, "memory", "dying")

    def _gained(self, name: str, total: int | None, counted: bool) -> None:
        if total is None:
            return
        gained = total - self._before.get(name, 0)
        self._before[name] = total
        if counted and gained > 0:
            self._tally.add(name, gained)

    def _take_leaks(self, block: Block) -> None:
        names = ("path", "dying", "unit", "container", "comm")
        for path, dying, unit, container, comm in zip(*(block.column(name) for name in names), strict=True):
            if path in self._leaks or len(self._leaks) < PATHS:
                self._leaks[path or ""] = (_leaker(path, unit, container, comm), dying or 0)

    # --- what is a matter of the last minutes ------------------------------------------------------------------------

    def publish(self) -> None:
        per_second = self._per_second()
        self._tally.set(families.LEAK_RATE, per_second)
        self._publish_leakers()
        if self._load is None:
            return
        per_hour = None if per_second is None else per_second * 3600
        leaf = LeafCost(*map(self._leaf.get, LEAF_GAUGES))
        forecast = judge(self.kernel, Load(*self._load, per_hour, per_hour), leaf).forecast
        self._tally.set(families.WALK_COST, forecast.read_cost_now_s)
        at_us = forecast.costs_1s_at_us
        self._tally.set(families.WALK_COSTS_1S_AT, None if at_us is None else at_us / 1e6)

    def _per_second(self) -> float | None:
        """None until a minute was seen, and for a minute after a purge."""
        while self._census and self._census[0][0] < self._census[-1][0] - WINDOW_US:
            self._census.popleft()
        known = list(self._census)
        known = known[since_purge([dying for _, dying in known]) :]
        if len(known) < 2 or known[-1][0] - known[0][0] < LEAST_US:
            return None
        (first_us, first), (last_us, last) = known[0], known[-1]
        return (last - first) / (last_us - first_us) * 1e6

    def _publish_leakers(self) -> None:
        sums: dict[str, int] = {}
        for leaker, dying in self._leaks.values():
            if dying > 0:
                sums[leaker] = sums.get(leaker, 0) + dying
        ranked = sorted(((name, n) for name, n in sums.items() if name != OTHER), key=lambda one: (-one[1], one[0]))
        rest = sums.get(OTHER, 0) + sum(n for _, n in ranked[families.LEAKERS :])
        shown = ranked[: families.LEAKERS] + ([(OTHER, rest)] if rest else [])
        self._tally.replace(families.LEAKERS_DYING, (((name,), float(n)) for name, n in shown))


def _leaker(path: str | None, unit: str | None, container: str | None, comm: str | None) -> str:
    """As a person names it: the unit, the path of containers, or who made them."""
    if not path:
        return OTHER
    return unit or (path if container else comm) or path
