"""Evidence of a pattern that is an announcement: the line itself is the measurement, and nobody need have been busy."""

from __future__ import annotations

from zombiescope.diagnosis import announcements
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement
from zombiescope.diagnosis.symptom import Symptom


def announced(case: Case, *kinds: str) -> Symptom | None:
    """The event of one of these kinds that heads the incident; None where another one does, or none is there."""
    first = announcements.foremost(case.group.symptoms)
    return first if first is not None and first.facts["event"] in kinds else None


def evidence(symptom: Symptom, fix: Fix, culprit: Actor | None = None) -> Evidence:
    """Headed by what was announced."""
    said = announcements.said(symptom)
    more = int(symptom.facts.get("count") or 1)
    often = f", {more:,} times" if more > 1 else ""
    kind = str(symptom.facts["event"])
    line = Measurement(f"announced by {_source(symptom)}{often}", kind, None, "events", "confirms", symptom.from_us)
    return Evidence((line,), culprit, said, fix)


def _source(symptom: Symptom) -> str:
    driver = symptom.facts.get("driver")
    return f"the driver {driver}" if driver else "the kernel's log"
