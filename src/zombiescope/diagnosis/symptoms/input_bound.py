"""A GPU that waits for its input: the workers that prepare it run all the time, and the GPU does not.

That is how many a job is, and nobody on the node does anything wrong: a note for whoever wants it faster. Where it
became so is another symptom (input_slower.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.input_workers import workers
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.tenant_names import TenantNames
from zombiescope.diagnosis.thresholds import INPUT_BOUND_LEAST_S, INPUT_BOUND_LEAST_USED, INPUT_BOUND_MOST_USED


def find(facts: Facts) -> Iterator[Symptom]:
    if facts.end_us - facts.start_us < INPUT_BOUND_LEAST_S * SECOND_US:
        return
    for number, series in sorted(facts.gpus.items()):
        mine = [one for one in facts.gpu_tenants if one.gpu == number and one.overlaps(facts.start_us, facts.end_us)]
        used = series.between("utilisation", facts.start_us, facts.end_us)
        if not mine or np.count_nonzero(~np.isnan(used)) < INPUT_BOUND_LEAST_S:
            continue
        mean = float(np.nanmean(used))
        if not INPUT_BOUND_LEAST_USED <= mean < INPUT_BOUND_MOST_USED:
            continue
        found = workers(facts, {one.pid for one in mine}, facts.start_us, facts.end_us)
        if found.are_saturated:
            whose = TenantNames(facts).of(mine)
            text = (
                f"GPU {number} ({whose}) waits for its input: its {found.many} workers ran {found.ratio * 100:.0f}% of "
                f"the time, and the GPU {mean:.0f}%; more workers, or less work in each, would use it better"
            )
            about = {"gpu_number": number, "workers": found.many, "ratio": round(found.ratio, 3)}
            yield Symptom(DETECTOR, facts.start_us, facts.end_us, text, group=f"input of GPU {number}", facts=about)


DETECTOR = Detector(
    kind="input_bound",
    title="a GPU waits for its input",
    reported_when="the workers that a trainer started ran 90% of the time or more, and its GPU was used less than 80%",
    find=find,
    source="gpu_seconds",
    role="victim",
    about="gpu",
    begins="window",
    has_hog=False,
    is_remark=True,
)
