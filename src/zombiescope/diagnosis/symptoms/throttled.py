"""A cgroup that its CPU quota stopped: its tasks stood still although cores were idle.

Nothing of this is in the samples: who is throttled does not run. It is read from cpu.stat of the cgroups that have a
quota and were stopped by it, or appear in the samples.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import QUOTA_STOOD_RATIO
from zombiescope.store.thresholds import THROTTLED_PERIODS


def find(facts: Facts) -> Iterator[Symptom]:
    by_cgroup: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in facts.cgroup_stats:
        if row["nr_periods"]:
            by_cgroup[row["cgroup"] or ""].append(row)
    for cgroup, rows in sorted(by_cgroup.items()):
        periods = sum(row["nr_periods"] for row in rows)
        throttled = sum(row["nr_throttled"] or 0 for row in rows)
        stood_us = sum(row["throttled_us"] or 0 for row in rows)
        span_us = max(rows[-1]["time"] - rows[0]["time"], 0) + 10_000_000
        from_us = max(facts.start_us, rows[0]["time"] - 10_000_000)
        yield from stopped(cgroup, periods, throttled, stood_us, span_us, (from_us, rows[-1]["time"]))


def stopped(
    cgroup: str, periods: int, throttled: int, stood_us: int, span_us: int, window: tuple[int, int]
) -> Iterator[Symptom]:
    """What cpu.stat counted of a cgroup in a span, if that is enough to be noticed."""
    ratio = throttled / max(periods, 1)
    if ratio < THROTTLED_PERIODS or stood_us / max(span_us, 1) < QUOTA_STOOD_RATIO:
        return
    yield Symptom(
        DETECTOR,
        *window,
        f"{cgroup} was stopped by its CPU quota in {ratio * 100:.0f}% of its periods, for {stood_us / 1e6:.1f} s",
        "warning",
        group=cgroup,
        facts={"periods": periods, "throttled": throttled, "throttled_us": stood_us, "ratio": ratio},
    )


DETECTOR = Detector(
    kind="throttled",
    title="stopped by its CPU limit",
    reported_when="a CPU quota stopped a cgroup in 20% of its periods",
    find=find,
    source="cgroup_stats",
    role="victim",
    weight=2,
    bounds_case=True,
    has_hog=False,
    is_stopped=True,
)
