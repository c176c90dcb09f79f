"""A tick with 70 and with 70,000 memory cgroups: the same recorder, before and after real zombies were made."""

from __future__ import annotations

import statistics
import time

from benchmarks.loads import zombies
from benchmarks.mount import memory_mount
from benchmarks.recorder import recorder
from benchmarks.table import Row


def measure(seconds: float, count: int = 70_000) -> list[Row]:
    mount = memory_mount()
    with recorder() as few:
        time.sleep(seconds)
    with zombies(count, mount), recorder() as many:
        time.sleep(seconds)
    costs = [_median_tick_us(recording.result["scratch"]["cost"]) for recording in (few, many)]
    return [
        Row("a second of recording, few cgroups", f"{costs[0] / 1000:.2f} ms CPU"),
        Row(f"the same with {count:,} zombies more", f"{costs[1] / 1000:.2f} ms CPU"),
        Row("ratio", f"{costs[1] / costs[0]:.2f}", "goal: 1"),
    ]


def _median_tick_us(cost: list[dict[str, int]]) -> float:
    return statistics.median(row["cpu_us"] for row in cost[3:])
