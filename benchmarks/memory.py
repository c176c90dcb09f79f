"""Resident memory of the recorder over time, and the helper's peak."""

from __future__ import annotations

import os
import time

from benchmarks.loads import LIGHT, running
from benchmarks.recorder import recorder
from benchmarks.table import Row


def measure(seconds: float) -> list[Row]:
    readings: list[tuple[float, int]] = []
    with running(LIGHT), recorder(segment_s=30.0, compact_every_s=max(60.0, seconds / 4)) as recording:
        started = time.monotonic()
        while (elapsed := time.monotonic() - started) < seconds:
            readings.append((elapsed, recording.rss_bytes()))
            time.sleep(min(5.0, seconds / 20))
    half = [reading for reading in readings if reading[0] > seconds / 2]
    limit = 64 + 0.4 * (os.cpu_count() or 1)
    return [
        Row(
            "resident at the end",
            f"{readings[-1][1] / 1e6:.1f} MB",
            f"after {seconds / 60:.0f} min; goal: at most {limit:.1f} MB",
        ),
        Row("trend over the second half", f"{_slope(half) * 3600 / 1e6:+.2f} MB an hour", f"{len(half)} readings"),
        Row("peak", f"{recording.result['max_rss_bytes'] / 1e6:.1f} MB", "start-up included"),
        Row("helper's peak", f"{recording.result['helper_max_rss_bytes'] / 1e6:.0f} MB", "a process of its own, niced"),
    ]


def _slope(points: list[tuple[float, int]]) -> float:
    """Bytes a second by least squares."""
    count = len(points)
    mean_x, mean_y = (sum(column) / count for column in zip(*points, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
