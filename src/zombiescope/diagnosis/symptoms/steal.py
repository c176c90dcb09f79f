"""Time that the hypervisor took: the core was wanted and not to be had. Nothing on the node is to blame.

Where the hypervisor does not report it, a machine that stood still shows as a hole in all cores (time_holes.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zombiescope.diagnosis.core_grid import CoreGrid
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.spans import runs
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.time_holes import Pause, pauses
from zombiescope.recording.thresholds import STOLEN_RATIO

LEAST_S = 2
MACHINE_US = 500_000
"""Virtual machines are stopped for 100 to 200 ms now and then, and nobody notices."""


def find(facts: Facts) -> Iterator[Symptom]:
    if facts.cores is not None:
        yield from _counted(facts.cores)
        yield from (_machine(facts.cores, one) for one in pauses(facts.cores) if one.gap_us >= MACHINE_US)


def _counted(cores: CoreGrid) -> Iterator[Symptom]:
    stolen = np.nan_to_num(cores.ratios["steal"])
    for row, cpu in enumerate(cores.cpus):
        for first, last in runs(stolen[row] >= STOLEN_RATIO, least=LEAST_S, bridge=1):
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


def _machine(cores: CoreGrid, pause: Pause) -> Symptom:
    return Symptom(
        DETECTOR,
        pause.from_us,
        pause.to_us,
        f"{'all' if pause.cores == len(cores.cpus) else f'{pause.cores} of'} {len(cores.cpus)} cores took no interrupt "
        f"for {pause.gap_us / 1000:.0f} ms at once: "
        "the machine stood still",
        "warning",
        group="the machine",
        facts={"ratio": min(pause.gap_us / 1e6, 1.0), "gap_us": pause.gap_us, "at_once": True},
        finding="machine-stalled",
    )


DETECTOR = Detector(
    kind="steal",
    title="the hypervisor took time",
    reported_when="the hypervisor took 30% of a core for two seconds; or most cores took no interrupt for the "
    "same half second or more",
    find=find,
    source="cores",
    role="victim",
    bounds_case=True,
    has_hog=False,
    core_rank=3,
)
