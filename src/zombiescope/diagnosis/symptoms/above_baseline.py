"""A unit that uses far more CPU than it did in the last thirty days, even though no core is saturated.

"kubelet is normally under 1%" is known from the rollups: CPU of each unit hour by hour, across reboots. A unit without
a day of history has no baseline and is not judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from zombiescope.base.baseline import percentile
from zombiescope.base.time import HOUR_US
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.store import columns

FACTOR = 4.0
LEAST_CORES = 0.5
LEAST_HOURS = 24
LEAST_WINDOW_S = 5.0


def find(facts: Facts) -> Iterator[Symptom]:
    if facts.seconds < LEAST_WINDOW_S:
        return
    usual = baselines(facts)
    if not usual:
        return
    grid = facts.samples
    group, names = grid.groups(lambda task: task.unit or task.container or task.comm)
    counted = np.bincount(group[group >= 0], minlength=len(names))
    for number, name in enumerate(names):
        cores = counted[number] / grid.hz / facts.seconds
        if name in usual and cores >= LEAST_CORES and cores >= FACTOR * usual[name]:
            yield Symptom(
                DETECTOR,
                facts.start_us,
                facts.end_us,
                f"{name} uses {cores:.2f} cores; in its busiest hours of the last thirty days (95th percentile) it "
                f"used {usual[name]:.2f}",
                "warning",
                group=name,
                facts={"cores": float(cores), "baseline_cores": usual[name]},
            )


def baselines(facts: Facts) -> dict[str, float]:
    """Unit -> cores that it used in its busier hours before this one; only units with a day of history."""
    before_us = facts.start_us // HOUR_US * HOUR_US
    return facts.always(("baselines", before_us), lambda: _read(facts, before_us))


def _read(facts: Facts, before_us: int) -> dict[str, float]:
    rows = facts.recording.table("unit_hours", before_us - 30 * 24 * HOUR_US, before_us, ("unit", "cpu_ms"))
    hours: dict[str, list[float]] = defaultdict(list)
    for row in columns.records(rows):
        if row["unit"] is not None and row["cpu_ms"] is not None:
            hours[row["unit"]].append(row["cpu_ms"] / 3_600_000)
    return {unit: percentile(used, 95) for unit, used in hours.items() if len(used) >= LEAST_HOURS}


DETECTOR = Detector(
    kind="above_baseline",
    title="more than usual",
    reported_when="a unit used four times as much CPU as in its busiest hours of the last thirty days",
    find=find,
    source="samples",
    role="hog",
    begins="window",
    bounds_case=True,
    names_hog=True,
)
