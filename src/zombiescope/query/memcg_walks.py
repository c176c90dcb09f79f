"""Stacks that walk memory cgroups: the evidence that somebody pays for them.

Functions that step from one memory cgroup to the next, and those that add up their counters below a file that shows
statistics. Whoever frees a page is on the same stacks, but not in these functions.

WalkPeak follows a log frame by frame, without numpy or pyarrow; cgroups.py does the same for a window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from zombiescope.base.time import SECOND_US
from zombiescope.query.memcg_cost import LEAF_GAUGES, CostVerdict, LeafCost, Load, judge
from zombiescope.query.recent import Recent
from zombiescope.query.segment_names import SegmentNames
from zombiescope.store import schema
from zombiescope.store.log import Block, LogFrame
from zombiescope.store.stacks import KERNEL_KINDS

STEPS = frozenset(
    {
        "mem_cgroup_iter", "css_next_descendant_pre", "css_next_child", "css_rightmost_descendant",
        "accumulate_memcg_tree", "mem_cgroup_nr_lru_pages", "mem_cgroup_node_nr_lru_pages", "memcg_sum_events",
    }
)  # fmt: skip
READERS = frozenset(
    {"memcg_numa_stat_show", "memcg_stat_show", "memory_stat_show", "memory_stat_format", "mem_cgroup_usage"}
)
SUMS = frozenset(
    {
        "cpumask_next", "find_next_bit", "_find_next_bit", "memcg_page_state", "lruvec_page_state", "tree_stat",
        "tree_events", "mem_cgroup_read_stat", "mem_cgroup_read_events", "mem_cgroup_get_lru_size",
        "accumulate_vmstats",
    }
)  # fmt: skip
GENERATIONS = "shrink_many"
"""From 6.3 on (e4dde56cd208) MGLRU has a list of its own in the place of mem_cgroup_iter."""
VISITS = frozenset(
    {
        "shrink_many", "shrink_one", "lru_gen_rotate_memcg", "lru_gen_release_memcg", "try_to_shrink_lruvec",
        "should_run_aging", "get_nr_to_scan", "lruvec_is_sizable", "lruvec_is_reclaimable", "get_swappiness",
        "mem_cgroup_get_nr_swap_pages", "shrink_slab", "shrink_slab_memcg", "vmpressure", "should_abort_scan",
        "mem_cgroup_put", "css_put",
    }
)  # fmt: skip
"""What each memory cgroup costs there, whether or not it has a page: pages are looked at in functions below these."""
_USUAL_HZ = 99.0


def is_walk(functions: Iterable[str]) -> bool:
    """Whether a stack with these functions of the kernel, outermost first, walks memory cgroups."""
    path = tuple(functions)
    names = frozenset(path)
    if GENERATIONS in names and path[-1] in VISITS:
        return True
    return bool(names & STEPS) or bool(names & READERS and names & SUMS)


def hertz(node: Mapping[str, object]) -> float:
    """Samples a second of a busy core."""
    hz = node.get("hz")
    return float(hz) if isinstance(hz, int | float) and hz > 0 else _USUAL_HZ


class WalkPeak:
    """Samples that walked, by second, in the newest `keep_us`."""

    def __init__(self, keep_us: int) -> None:
        self._keep_us = keep_us
        self._names = SegmentNames()
        self._walks: dict[int, bool] = {}
        self._by_second: Counter[int] = Counter()
        self._sampled_us: int | None = None

    def update(self, frames: Iterable[LogFrame]) -> None:
        """Frames in the order they were appended."""
        for frame in frames:
            self._names.update(frame)
            for block in frame.blocks:
                if block.table is schema.SAMPLES and block.rows:
                    self._count(block.column("time"), block.column("stack"))
                    self._sampled_us = frame.wall_us
            oldest = (frame.wall_us - self._keep_us) // SECOND_US
            for second in [second for second in self._by_second if second < oldest]:
                del self._by_second[second]
            if frame.closes:
                self._names.forget()
                self._walks.clear()

    def peak(self, hz: float) -> float | None:
        """CPUs that walked in the second in which most did; None where nobody was sampled."""
        return None if self._sampled_us is None else max(self._by_second.values(), default=0) / hz

    def _count(self, times: Iterable[int], stacks: Iterable[int | None]) -> None:
        for at_us, stack in zip(times, stacks, strict=True):
            if stack is not None and self._is_walk(stack):
                self._by_second[at_us // SECOND_US] += 1

    def _is_walk(self, stack: int) -> bool:
        known = self._walks.get(stack)
        if known is None:
            functions = (frame.name for frame in self._names.stack(stack) if frame.kind in KERNEL_KINDS)
            known = self._walks[stack] = is_walk(functions)
        return known


# --- live -------------------------------------------------------------------------------------------------------------
# The verdict on memory cgroups while a recording grows: the same as of a window, frame by frame and without numpy.

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
