"""Memory cgroups that were removed and stay: more of them at the end of the window than at its beginning."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import DYING_GROW_PER_S
from zombiescope.query.cgroups import growth


def find(facts: Facts) -> Iterator[Symptom]:
    grown = growth(facts.recording, facts.cgroups.memory, facts.start_us, facts.end_us)
    if grown.dying is None or grown.dying <= 0:
        return
    yield Symptom(
        DETECTOR,
        facts.start_us,
        facts.end_us,
        f"{grown.dying:,} new dying memory cgroups in {grown.seconds:.0f} s (about {grown.dying_per_hour:,.0f}/h if "
        "sustained; too short to extrapolate)",
        "warning" if grown.dying >= DYING_GROW_PER_S * grown.seconds else "info",
        group="memory cgroups",
        facts={"dying": grown.dying, "per_hour": grown.dying_per_hour},
    )


DETECTOR = Detector(
    kind="dying_cgroups_grow",
    title="dying memory cgroups grow in number",
    reported_when="one memory cgroup a second is removed and stays; fewer are a note",
    find=find,
    source="census",
    role="victim",
    about="memory",
    begins="window",
    has_hog=False,
    is_remark=True,
)
