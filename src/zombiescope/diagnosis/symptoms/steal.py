"""Time that the hypervisor took: the core was wanted and not to be had. Nothing on the node is to blame.

Only what /proc/stat counted as stolen. A machine that stood still without that is machine_stall.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zombiescope.diagnosis.core_grid import CoreGrid
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.spans import runs
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import STEAL_LEAST_S
from zombiescope.store.thresholds import STOLEN_RATIO


def find(facts: Facts) -> Iterator[Symptom]:
    if facts.cores is not None:
        yield from _counted(facts.cores)


def _counted(cores: CoreGrid) -> Iterator[Symptom]:
    stolen = np.nan_to_num(cores.ratios["steal"])
    for row, cpu in enumerate(cores.cpus):
        for first, last in runs(stolen[row] >= STOLEN_RATIO, least=STEAL_LEAST_S, bridge=1):
            ratio = float(stolen[row, first:last].mean())
            yield Symptom(
                DETECTOR,
                cores.at_us(first),
                cores.at_us(last),
                f"{ratio * 100:.0f}% of core {cpu} was stolen by the hypervisor for {last - first} s",
                "warning",
                cpu,
                facts={"ratio": ratio},
                finding="stolen",
            )


DETECTOR = Detector(
    kind="steal",
    title="the hypervisor took time",
    reported_when="the hypervisor took 30% of a core for two seconds, as /proc/stat counted it",
    find=find,
    source="cores",
    role="victim",
    bounds_case=True,
    has_hog=False,
    core_rank=3,
)
