"""Services that systemd started again in the window: `systemctl --failed` never lists them."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.query.events import restarts


def find(facts: Facts) -> Iterator[Symptom]:
    for one in restarts(facts.events):
        times = "once" if one.times == 1 else f"{one.times} times"
        so_far = "" if one.so_far is None else f", {one.so_far} times so far"
        yield Symptom(
            DETECTOR,
            one.first_us,
            one.last_us,
            f"{one.unit} was restarted {times} in {facts.seconds:.0f} s{so_far}",
            "warning",
            group=one.unit,
            facts={"unit": one.unit, "times": one.times, "so_far": one.so_far},
        )


DETECTOR = Detector(
    kind="unit_restarted",
    title="a service was restarted",
    reported_when="systemd started a service again",
    find=find,
    source="events",
    role="victim",
    about="work",
    has_hog=False,
    is_remark=True,
)
