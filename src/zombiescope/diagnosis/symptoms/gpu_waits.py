"""A GPU that fell idle, and too little is known to call it an incident: a note.

Its process lives and uses no CPU, with all its workers; but where it is in its code was not read, or it has no workers.
A server without requests looks like that.
"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis import idle_gpus
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.symptoms.gpu_idle import hangs, symptom
from zombiescope.diagnosis.thresholds import GPU_STUCK_LEAST_S


def find(facts: Facts) -> Iterator[Symptom]:
    for one in idle_gpus.find(facts):
        if one.is_stopped or one.is_stuck or one.seconds < GPU_STUCK_LEAST_S:
            continue
        if one.may_be_stuck and not hangs(one):
            yield symptom(DETECTOR, one)


DETECTOR = Detector(
    kind="gpu_waits",
    title="a GPU is idle",
    reported_when="the same for 10 s, where it was not read what the process waits in, or where it has no workers",
    find=find,
    source="gpu_seconds",
    role="victim",
    about="gpu",
    has_hog=False,
    is_remark=True,
)
