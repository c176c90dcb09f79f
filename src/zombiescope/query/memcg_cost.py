"""What a number of memory cgroups costs on a kernel: the verdict of `cgroups`, and when it will hurt.

Who pays for a zombie depends on the kernel: kernel/release.py has the releases and the commits.

The cost of a walk is estimated from what one cgroup costs: the recorder times a read of a leaf's file now and then.
Whether anybody pays it is seen in the samples: a count is no cost, nor is an estimate while nobody reads.

This is the one verdict: `cgroups`, `check`, `top`, the page and `diagnose` say what is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass

from zombiescope.base.time import HOUR_US, WEEK_US
from zombiescope.kernel.release import (
    NUMA_STAT_WALKS_BEFORE,
    PAGE_CACHE_PINS_BEFORE,
    STAT_WALKS_BEFORE,
    kernel_version,
)

LEAF_GAUGES = ("numa_stat_leaf_ns", "stat_leaf_ns", "walk_leaf_ns")
"""Of the recorder's source "probe", in the order of LeafCost."""
COSTLY = "costly"
ZOMBIES = "zombie-memcg"
"""The pattern that blames them: whatever an incident of that window says of them holds, also when it is over."""
COSTLY_READ_S = 0.5
MANY_DYING = 5000
GROWING_PER_HOUR = 10.0
WALKED = 100
"""Dying ones, if they are as many as those in use, that are taken for what a walk costs. Of fewer it may be the reader
who reads too often."""
MANY_TRACKED = 5_000
"""Memory cgroups that make a walk long, dying or not."""
WALKED_CPUS = 0.2
"""CPUs in one second: a fifth of a held core is what a diagnosis takes for the cause."""
NOTICED_CPUS = 0.1


@dataclass(frozen=True, slots=True)
class Load:
    """The memory cgroups of a node at a moment; growth is None when it is not known."""

    at_us: int
    total: int
    live: int | None
    dying: int | None
    dying_per_hour: float | None = None
    total_per_hour: float | None = None
    walked_cpus: float | None = None
    """CPUs that walked them in the worst second of the window; None where nobody was sampled."""


@dataclass(frozen=True, slots=True)
class LeafCost:
    """Nanoseconds that one read of a leaf cgroup's file took; None when it was not measured."""

    numa_stat_ns: int | None = None
    stat_ns: int | None = None
    walk_ns: int | None = None
    """What one more cgroup adds to a read that walks. Older recordings have only the whole reads, which say more."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What reading the root's file is estimated to cost; when that reaches one and five seconds, if ever. It is never
    measured at the root: that is the very read that hurts."""

    read_cost_now_s: float | None
    costs_1s_at_us: int | None
    costs_5s_at_us: int | None


@dataclass(frozen=True, slots=True)
class CostVerdict:
    verdict: str
    why: str
    forecast: Forecast


def judge(release: str | None, load: Load, leaf: LeafCost) -> CostVerdict:
    """harmless, watch or costly, with the sentence that says why."""
    version = kernel_version(release)
    walks = _walk_cost_ns(version, leaf)
    forecast = _forecast(load, walks, leaf)
    verdict, why = _walked(load, walks, forecast) or _dear(load, walks, forecast) or _watched(load, forecast)
    return CostVerdict(verdict, _sentence(why, version), forecast)


def are_many(dying: int | None, live: int | None) -> bool:
    """Enough dying ones to be most of a walk."""
    return dying is not None and dying >= WALKED and (live is None or dying >= live)


def _walked(load: Load, walks: int | None, forecast: Forecast) -> tuple[str, str] | None:
    """Somebody was seen walking so many of them."""
    cpus = load.walked_cpus
    if cpus is None or cpus < NOTICED_CPUS or not (are_many(load.dying, load.live) or load.total >= MANY_TRACKED):
        return None
    which = f"{load.dying:,} dying ones" if are_many(load.dying, load.live) else f"{load.total:,} of them"
    seen = f"walking {which} took {cpus:.2f} of a CPU in the worst second of this window"
    why = f"{_read(forecast, 'costs')}, and {seen}" if _is_dear(walks, forecast) else seen
    return "costly" if cpus >= WALKED_CPUS else "watch", why


def _dear(load: Load, walks: int | None, forecast: Forecast) -> tuple[str, str] | None:
    """A read would cost much, by the estimate."""
    if not _is_dear(walks, forecast):
        return None
    if load.walked_cpus is None:
        return "costly", _read(forecast, "costs")
    return "watch", f"{_read(forecast, 'would cost')}, but no process was seen walking them"


def _is_dear(walks: int | None, forecast: Forecast) -> bool:
    return walks is not None and (forecast.read_cost_now_s or 0.0) > COSTLY_READ_S


def _read(forecast: Forecast, costs: str) -> str:
    seconds = forecast.read_cost_now_s or 0.0
    return f"one read of the root's memory statistics {costs} about {seconds:.1f} s of one core (estimated)"


def _watched(load: Load, forecast: Forecast) -> tuple[str, str]:
    concern = _concern(load, forecast)
    if concern is not None:
        return "watch", concern
    if load.dying is None:
        return "harmless", "how many are dying was not measured"
    return "harmless", f"{load.dying:,} of {load.total:,} are dying"


def _concern(load: Load, forecast: Forecast) -> str | None:
    dying, live, rate = load.dying, load.live, load.dying_per_hour
    if dying is not None and dying > MANY_DYING and rate is not None and rate >= GROWING_PER_HOUR:
        return f"{dying:,} are dying, and {rate:,.0f} more every hour"
    if dying is not None and live is not None and dying > 2000 and dying > 10 * live:
        return f"{dying:,} are dying, {live:,} in use"
    if forecast.costs_1s_at_us is not None and forecast.costs_1s_at_us - load.at_us <= WEEK_US:
        return "one read of the root's memory statistics will cost about a second within a week (estimated)"
    return None


def _sentence(why: str, version: tuple[int, int] | None) -> str:
    return f"{why}; {_kernel_says(version)}"


def _kernel_says(version: tuple[int, int] | None) -> str:
    if version is None:
        return "the kernel is not known, so whether reading statistics walks them is not either"
    name = f"kernel {version[0]}.{version[1]}"
    if version < STAT_WALKS_BEFORE:
        return f"{name} walks all of them on every read of memory.stat and memory.numa_stat above them"
    if version < NUMA_STAT_WALKS_BEFORE:
        return f"{name} walks all of them on every read of memory.numa_stat above them"
    if version < PAGE_CACHE_PINS_BEFORE:
        return f"on {name} reading statistics is cheap whatever the count, but reclaim still walks them"
    return (
        f"on {name} page cache should no longer keep removed cgroups"
        " (from the kernel's history: not yet seen by us on a real one)"
    )


def _walk_cost_ns(version: tuple[int, int] | None, leaf: LeafCost) -> int | None:
    """What one memory cgroup adds to the dearest read that walks; None when none does, or it is not known."""
    if version is None:
        return None
    if leaf.walk_ns is not None:
        return leaf.walk_ns if version < NUMA_STAT_WALKS_BEFORE else None
    costs = []
    if version < NUMA_STAT_WALKS_BEFORE and leaf.numa_stat_ns is not None:
        costs.append(leaf.numa_stat_ns)
    if version < STAT_WALKS_BEFORE and leaf.stat_ns is not None:
        costs.append(leaf.stat_ns)
    return max(costs, default=None)


def _forecast(load: Load, walk_ns: int | None, leaf: LeafCost) -> Forecast:
    if walk_ns is None:
        measured = [cost for cost in (leaf.numa_stat_ns, leaf.stat_ns) if cost is not None]
        return Forecast(max(measured) / 1e9 if measured else None, None, None)
    return Forecast(walk_ns * load.total / 1e9, _reaches(load, walk_ns, 1.0), _reaches(load, walk_ns, 5.0))


def _reaches(load: Load, walk_ns: int, seconds: float) -> int | None:
    needed = seconds * 1e9 / max(walk_ns, 1)
    if load.total >= needed:
        return load.at_us
    if load.total_per_hour is None or load.total_per_hour <= 0:
        return None
    return load.at_us + int((needed - load.total) / load.total_per_hour * HOUR_US)
