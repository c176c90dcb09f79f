"""Memory of the kernel itself that grows without end: objects that cannot be reclaimed (slab) and per-CPU memory.

Growth is judged by where it leads, not by its size, which differs by the size of the node: it goes on through the whole
time that is known (ten minutes at least), and at that pace what is available lasts less than a few hours.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zombiescope.base.time import HOUR_US
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import (
    KERNEL_MEMORY_BACK_US,
    KERNEL_MEMORY_GROWN_RATIO,
    KERNEL_MEMORY_LASTS_HOURS,
    KERNEL_MEMORY_LEAST_US,
    KERNEL_MEMORY_PARTS,
)

KINDS = {"slab_unreclaimable_bytes": "unreclaimable slab", "percpu_bytes": "per-CPU memory"}


def find(facts: Facts) -> Iterator[Symptom]:
    total, free = facts.gauge("meminfo", "mem_total_bytes"), facts.gauge("meminfo", "mem_available_bytes")
    if not total or free is None:
        return
    past = facts.before(facts.end_us, KERNEL_MEMORY_BACK_US)
    for (name, _), (time, value) in ({} if past is None else past.readings("meminfo")).items():
        if name not in KINDS or len(time) < KERNEL_MEMORY_PARTS or time[-1] - time[0] < KERNEL_MEMORY_LEAST_US:
            continue
        means = np.array([part.mean() for part in np.array_split(value, KERNEL_MEMORY_PARTS)])
        grown, hours = int(value[-1] - value[0]), float(time[-1] - time[0]) / HOUR_US
        if (
            (np.diff(means) > 0).all()
            and grown >= KERNEL_MEMORY_GROWN_RATIO * total
            and free / (grown / hours) < KERNEL_MEMORY_LASTS_HOURS
        ):
            yield _symptom(facts, name, grown, hours, int(value[-1]), free / (grown / hours))


def _symptom(facts: Facts, name: str, grown: int, took_hours: float, now: int, hours: float) -> Symptom:
    text = (
        f"{KINDS[name]} of the kernel grew by {grown / 1e9:.1f} GB in {took_hours * 60:.0f} minutes to "
        f"{now / 1e9:.1f} GB; at that pace memory lasts {hours:.1f} h"
    )
    known = {"counter": name, "grown": grown, "bytes": now, "hours_left": round(hours, 2)}
    return Symptom(
        DETECTOR, facts.start_us, facts.end_us, text, group=name, facts=known, subject="memory", cores=frozenset()
    )  # fmt: skip


DETECTOR = Detector(
    kind="kernel_memory_growth",
    title="memory of the kernel grows without end",
    reported_when="unreclaimable slab or per-CPU memory grew through all of five minutes or more by 1% of the node's "
    "memory, and at that pace what is available lasts less than six hours",
    find=find,
    source="counters",
    role="victim",
    about="memory",
    begins="window",
    has_hog=False,
)
