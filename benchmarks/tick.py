"""A tick with 70 and with 70,000 memory cgroups: the same recorder, before and after real zombies were made."""

from __future__ import annotations

import statistics
import time
from typing import Any

from benchmarks.loads import zombies
from benchmarks.mount import memory_mount
from benchmarks.recorder import recorder
from benchmarks.table import Row


def measure(seconds: float, count: int = 70_000) -> list[Row]:
    with recorder() as recording:
        time.sleep(seconds)
        few_until = time.time()
        with zombies(count, memory_mount()):
            time.sleep(3)
            many_since = time.time()
            time.sleep(seconds)
            many_until = time.time()
            rss = recording.rss_bytes()
    cost = recording.result["scratch"]["cost"][3:]
    few = _median_us(cost, 0, few_until)
    many = _median_us(cost, many_since, many_until)
    return [
        Row("a second of recording, few cgroups", f"{few / 1000:.2f} ms CPU"),
        Row(f"the same with {count:,} zombies in the ledger", f"{many / 1000:.2f} ms CPU"),
        Row("ratio", f"{many / few:.2f}", "goal: 1"),
        Row("resident then", f"{rss / 1e6:.1f} MB"),
    ]


def _median_us(cost: list[dict[str, Any]], since: float, until: float) -> float:
    return float(statistics.median(row["cpu_us"] for row in cost if since < row["time"].timestamp() < until))
