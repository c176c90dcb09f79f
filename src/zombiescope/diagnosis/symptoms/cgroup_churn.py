"""Cgroups that are made in quick succession at one path, with who makes them. Where the making itself takes a core,
that is an incident of its own; without that it is worth knowing, because each may stay as a zombie."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.carriers import is_carrier
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.leak import charged, maker
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import CGROUPS_MADE_PER_S
from zombiescope.query.cgroups import Leak, makers


def find(facts: Facts) -> Iterator[Symptom]:
    before = {line.path: line.created or 0 for line in facts.cgroups_at(facts.start_us).leaks}
    for line in makers(facts.cgroups.leaks):
        made = (line.created or 0) - before.get(line.path, 0)
        if made >= CGROUPS_MADE_PER_S * facts.seconds:
            yield _symptom(facts, line, made)


def _symptom(facts: Facts, line: Leak, made: int) -> Symptom:
    creator = line.creator
    least = "" if line.exact in (True, None) else "at least "
    names = [name for name in (creator.comm, creator.unit or creator.container) if name]
    by = f" by {' of '.join(names)}{_for_whom(facts, line)}" if names else ""
    return Symptom(
        DETECTOR,
        facts.start_us,
        facts.end_us,
        f"{least}{made:,} cgroups were made{by} and {line.removed or 0:,} removed in {facts.seconds:.0f} s at "
        f"{line.path or 'many paths'}; {line.dying:,} removed ones are kept",
        "warning",
        group=line.path or "many paths",
        facts={"created": made, "comm": creator.comm, "pid": creator.pid, "unit": creator.unit},
    )


def _for_whom(facts: Facts, line: Leak) -> str:
    """Of a runtime, which makes none for itself."""
    if not is_carrier(maker(line)):
        return ""
    who = charged(facts, line)
    return " for others" if who is None else f" for {who.subject}"


DETECTOR = Detector(
    kind="cgroup_churn",
    title="cgroups are made in quick succession",
    reported_when="two cgroups a second or more are made at one path",
    find=find,
    source="leaks",
    role="hog",
    begins="window",
    has_hog=False,
    is_remark=True,
)
