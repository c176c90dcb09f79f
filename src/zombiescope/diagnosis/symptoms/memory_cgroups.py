"""Memory cgroups that are so many that reading their statistics costs seconds, or will: a count is not a cause, and it
is not nothing either."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.base.severity import Severity
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import ZOMBIES_SHOWN

_SEVERITIES: dict[str | None, Severity] = {"costly": "warning", "watch": "warning"}


def find(facts: Facts) -> Iterator[Symptom]:
    view = facts.cgroups
    memory = view.memory
    if memory is None or (view.verdict not in _SEVERITIES and (memory.dying or 0) < ZOMBIES_SHOWN):
        return
    in_use = "" if memory.live is None else f" and {memory.live:,} are in use"
    yield Symptom(
        DETECTOR,
        facts.start_us,
        facts.end_us,
        f"{memory.total:,} memory cgroups are tracked{in_use}: {view.why} ({view.verdict})",
        _SEVERITIES.get(view.verdict, "info"),
        group="memory cgroups",
        facts={"total": memory.total, "live": memory.live, "dying": memory.dying, "verdict": view.verdict},
    )


DETECTOR = Detector(
    kind="memory_cgroups",
    title="many memory cgroups",
    reported_when="reading the statistics of all memory cgroups costs a second or more on this kernel, or will; a "
    "thousand dying ones that cost nothing are a note",
    find=find,
    source="census",
    role="victim",
    about="memory",
    begins="window",
    has_hog=False,
    is_remark=True,
)
