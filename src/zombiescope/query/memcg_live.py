"""The verdict on memory cgroups while a recording grows: the same as of a window, frame by frame and without numpy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from zombiescope.query.memcg_cost import LEAF_GAUGES, CostVerdict, LeafCost, Load, judge
from zombiescope.query.memcg_walks import WalkPeak, hertz
from zombiescope.query.recent import Recent
from zombiescope.store import schema
from zombiescope.store.log import Block, LogFrame

PROBE = "probe"


class LiveVerdict:
    """Follows who walks and what one cgroup costs; the counts are those of `Recent`."""

    def __init__(self, keep_us: int) -> None:
        self._walks = WalkPeak(keep_us)
        self._series: dict[int, str] = {}
        self._leaf: dict[str, int] = {}

    def update(self, frames: Iterable[LogFrame]) -> None:
        frames = list(frames)
        self._walks.update(frames)
        for frame in frames:
            for block in frame.blocks:
                self._take(block)
            if frame.closes:
                self._series.clear()

    def _take(self, block: Block) -> None:
        if block.table is schema.SERIES:
            rows = zip(*(block.column(name) for name in ("series", "source", "name")), strict=True)
            self._series |= {number: name for number, source, name in rows if source == PROBE}
        elif block.table is schema.COUNTERS and self._series:
            for number, value in zip(block.column("series"), block.column("value"), strict=True):
                if number in self._series:
                    self._leaf[self._series[number]] = value

    def verdict(self, node: dict[str, Any], recent: Recent) -> CostVerdict | None:
        """None where they are not counted."""
        census = recent.census()
        if census is None or census.total is None:
            return None
        load = Load(
            census.at_us, census.total, census.live, census.dying, recent.dying_per_hour(),
            walked_cpus=self._walks.peak(hertz(node)),
        )  # fmt: skip
        leaf = LeafCost(*map(self._leaf.get, LEAF_GAUGES))
        return judge(node.get("kernel"), load, leaf)
