"""The whole machine stood still: no core took an interrupt for the same half second or more.

Seen as a hole in the samples of most cores at once that neither idle time, stolen time nor the recorder itself explains
(time_holes.py). Three things do that: the host paused the virtual machine, the firmware took all cores (SMI), or the
kernel stopped them for a change of its own code (stop_machine). The pattern machine-pause says what speaks for each.
"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.core_grid import CoreGrid
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import MACHINE_STALL_US
from zombiescope.diagnosis.time_holes import Pause, pauses


def find(facts: Facts) -> Iterator[Symptom]:
    if facts.cores is not None:
        for pause in pauses(facts, facts.cores):
            if pause.gap_us >= MACHINE_STALL_US:
                yield _symptom(facts.cores, pause)


def _symptom(cores: CoreGrid, pause: Pause) -> Symptom:
    which = "all" if pause.cores == len(cores.cpus) else f"{pause.cores} of"
    return Symptom(
        DETECTOR,
        pause.from_us,
        pause.to_us,
        f"{which} {len(cores.cpus)} cores took no interrupt for {pause.gap_us / 1000:.0f} ms at once: the machine "
        "paused",
        "warning",
        group="the machine",
        facts={"gap_us": pause.gap_us, "cores": pause.cores},
        finding="machine-stalled",
    )


DETECTOR = Detector(
    kind="machine_stall",
    title="the machine paused",
    reported_when="most cores took no interrupt for the same half second or more, and the recorder lost nothing there",
    find=find,
    source="cores",
    role="victim",
    bounds_case=True,
    has_hog=False,
    core_rank=3,
)
