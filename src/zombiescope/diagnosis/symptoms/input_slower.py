"""The input of a GPU became too slow: it did less than in the minute before while its workers ran all the time.

The workers have their cores and wait for nobody, so nobody took anything from them: each batch costs more than it did.
Only workers that were there before count: an evaluation, or another epoch, has its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.gpu_loss import clause, of_gpu
from zombiescope.diagnosis.input_workers import workers
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.tenant_names import TenantNames
from zombiescope.diagnosis.thresholds import GPU_PAST_US, INPUT_SLOWER_LEAST_S
from zombiescope.query.gpu_use import falls


def find(facts: Facts) -> Iterator[Symptom]:
    for number, series in sorted(facts.gpus.items()):
        for first, last in falls(series.figures["utilisation"]):
            from_us, to_us = max(series.at_us(first), facts.start_us), min(series.at_us(last), facts.end_us)
            mine = [one for one in facts.gpu_tenants if one.gpu == number and one.overlaps(from_us, to_us)]
            if to_us - from_us < INPUT_SLOWER_LEAST_S * SECOND_US or not mine:
                continue
            loss = of_gpu(series, mine, from_us, to_us)
            before_us = max(facts.start_us, from_us - GPU_PAST_US)
            found = workers(facts, {one.pid for one in mine}, from_us, to_us, before_us)
            if loss is not None and found.are_saturated:
                text = (
                    f"{clause([loss], TenantNames(facts).of(mine))} while its {found.many} workers ran "
                    f"{found.ratio * 100:.0f}% of the time"
                )
                about = {"gpu_number": number, "workers": found.many, "ratio": round(found.ratio, 3)}
                yield Symptom(DETECTOR, from_us, to_us, text, group=f"input of GPU {number}", facts=about)


DETECTOR = Detector(
    kind="input_slower",
    title="the input of a GPU is too slow",
    reported_when="a GPU did a fifth less than in the minute before for ten seconds or more, while workers that were "
    "there before ran 90% of the time",
    find=find,
    source="gpu_seconds",
    role="victim",
    about="gpu",
    begins="summed",
    bounds_case=True,
    has_hog=False,
)
