"""How much of the window tasks waited for a resource (PSI), and what memory reclaim did meanwhile.

"some" is the part of the time in which at least one task waited, "full" that in which nobody who wanted to run could.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from zombiescope.checkup.counted import Counted

RESOURCES = ("cpu", "memory", "io", "irq")

RATES = (
    "pgscan_direct", "pgscan_kswapd", "allocstall", "compact_stall", "compact_fail", "pgmajfault",
    "workingset_refault_file", "pswpin", "pswpout",
)  # fmt: skip
COUNTS = ("oom_kill", "drop_pagecache", "drop_slab")


@dataclass(frozen=True, slots=True)
class Pressure:
    """Parts of the window, 0 to 1; None where the kernel does not measure it."""

    some: float | None
    full: float | None


@dataclass(frozen=True, slots=True)
class Reclaim:
    """Per second, by their names in /proc/vmstat; and counts of the window."""

    per_second: dict[str, float]
    counts: dict[str, int]


def pressure(counted: Counted, lacking: Collection[str]) -> dict[str, Pressure]:
    if "pressure" in lacking:
        return {resource: Pressure(None, None) for resource in RESOURCES}
    return {resource: _of(counted, resource) for resource in RESOURCES}


def _of(counted: Counted, resource: str) -> Pressure:
    some, full = (
        min(1.0, counted.total("pressure", name, resource) / 1e6 / counted.seconds) for name in ("some_us", "full_us")
    )
    if resource == "irq":  # since 6.1, and it has no "some"; where it never moved it may as well not be there
        return Pressure(None, full if counted.known("pressure", "full_us", "irq") else None)
    return Pressure(some, full)


def reclaim(counted: Counted, lacking: Collection[str]) -> Reclaim | None:
    if "vmstat" in lacking:
        return None
    return Reclaim(
        {name: counted.per_second("vmstat", name) for name in RATES},
        {name: counted.total("vmstat", name) for name in COUNTS},
    )
