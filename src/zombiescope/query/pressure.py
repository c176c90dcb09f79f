"""How much of the window tasks waited for a resource (PSI), and what memory reclaim did meanwhile.

"some" is the part of the time in which at least one task waited, "full" that in which every runnable task did.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from zombiescope.query.counter_sums import CounterSums

RESOURCES = ("cpu", "memory", "io", "irq")

RATES = (
    "pgscan_direct", "pgscan_kswapd", "allocstall", "compact_stall", "compact_fail", "pgmajfault",
    "workingset_refault_file", "pswpin", "pswpout",
)  # fmt: skip
COUNTS = ("oom_kill", "drop_pagecache", "drop_slab")


@dataclass(frozen=True, slots=True)
class WindowPressure:
    """Parts of the window, 0 to 1; None where the kernel does not measure it."""

    some: float | None
    full: float | None


@dataclass(frozen=True, slots=True)
class Reclaim:
    """Per second, by their names in /proc/vmstat; and counts of the window."""

    per_second: dict[str, float]
    counts: dict[str, int]


def pressure(sums: CounterSums, seconds: float, lacking: Collection[str] = ()) -> dict[str, WindowPressure]:
    """`lacking`: sources that could not be read."""
    if "pressure" in lacking:
        return {resource: WindowPressure(None, None) for resource in RESOURCES}
    return {resource: _of(sums, seconds, resource) for resource in RESOURCES}


def _of(sums: CounterSums, seconds: float, resource: str) -> WindowPressure:
    some, full = (
        min(1.0, sums.total("pressure", name, resource) / 1e6 / max(seconds, 1e-6)) for name in ("some_us", "full_us")
    )
    if resource == "irq":  # since 6.1, and it has no "some"
        return WindowPressure(None, full if sums.known("pressure", "full_us", "irq") else None)
    return WindowPressure(some, full)


def reclaim(sums: CounterSums, seconds: float, lacking: Collection[str] = ()) -> Reclaim | None:
    if "vmstat" in lacking:
        return None
    return Reclaim(
        {name: sums.total("vmstat", name) / max(seconds, 1e-6) for name in RATES},
        {name: sums.total("vmstat", name) for name in COUNTS},
    )
