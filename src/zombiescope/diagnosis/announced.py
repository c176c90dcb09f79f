"""What the kernel's log, a driver or a job announces, as evidence: the line itself is the measurement, and no task need
have been busy. What a line means, and what to do about it, is in kernel/log_kinds.py.

An incident that was announced is headed by that sentence, because the author of such a line knows more about it than
samples do. The line itself stays in the chain as it was printed.
"""

from __future__ import annotations

import re

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement
from zombiescope.diagnosis.plan import is_plain, shell
from zombiescope.diagnosis.symptom import Symptom, first_event, said
from zombiescope.kernel.log_kinds import KINDS, Fields, LineFix, LineStep
from zombiescope.model.plans.step import Step, advice, command, note


def announced(case: Case, pattern: str) -> Symptom | None:
    """The event that heads the incident, if it is of a kind that confirms this pattern."""
    first = first_event(case.group.symptoms)
    row = None if first is None else KINDS.get(str(first.facts["event"]))
    return first if row is not None and row.pattern == pattern else None


def restated(case: Case, pattern: str) -> Evidence | None:
    """All of a pattern that only says again what the line says: the row has its fix."""
    line = announced(case, pattern)
    row = None if line is None else KINDS[str(line.facts["event"])]
    if line is None or row is None or row.fix is None:
        return None
    return evidence(line, fix_of(row.fix, line.facts))


def fix_of(fix: LineFix, fields: Fields) -> Fix:
    return Fix(fix.summary, tuple(made for step in fix.steps if (made := _step(step, fields)) is not None))


def _step(step: LineStep, fields: Fields) -> Step | None:
    text = step.text
    if step.fields:
        value = next((str(fields[name]).strip() for name in step.fields if fields.get(name)), "")
        if not is_plain(value) or not re.fullmatch(step.shape, value):
            return None
        text = text.replace("{}", shell(step.word.replace("{}", value)))
    if step.kind == "look":
        return command(text, step.why)
    if step.kind == "note":
        return note(text)
    return advice(text, "stop-gap") if step.kind == "stop-gap" else advice(text)


def evidence(symptom: Symptom, fix: Fix, culprit: Actor | None = None) -> Evidence:
    """Headed by what was announced."""
    more = int(symptom.facts.get("count") or 1)
    often = f", {more:,} times" if more > 1 else ""
    kind = str(symptom.facts["event"])
    line = Measurement(f"announced by {_source(symptom)}{often}", kind, None, "events", "confirms", symptom.from_us)
    return Evidence((line,), culprit, said(symptom), fix)


def _source(symptom: Symptom) -> str:
    driver = symptom.facts.get("driver")
    return f"the driver {driver}" if driver else "the kernel's log"
