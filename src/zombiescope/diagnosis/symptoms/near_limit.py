"""A table of the kernel that is nearly full: tasks, open files. From then on fork() or open() fails for everybody.

The limit of one cgroup is told by the kernel's log when it is hit (an event). Sockets are not judged here: how many are
too many depends on where they go (patterns/port_exhaustion.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from zombiescope.base.severity import Severity
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import LIMIT_FULL_RATIO
from zombiescope.store.thresholds import NEAR_LIMIT


class Limit(NamedTuple):
    what: str
    used: tuple[str, str]
    """Source and name of what is in use."""
    limits: tuple[str, ...]
    """Of the source `limits`: whichever is the least."""


LIMITS = (
    Limit("tasks", ("loadavg", "tasks"), ("pid_max", "threads_max")),
    Limit("open files", ("limits", "files_open"), ("files_max",)),
)


def find(facts: Facts) -> Iterator[Symptom]:
    for limit in LIMITS:
        used = facts.peak(*limit.used, facts.start_us, facts.end_us)
        known = {name: facts.gauge("limits", name) for name in limit.limits}
        most = {name: value for name, value in known.items() if value}
        if used is None or not most:
            continue
        name = min(most, key=lambda one: most[one])
        if used >= NEAR_LIMIT * most[name]:
            yield _symptom(facts, limit, name, used, most[name])


def _symptom(facts: Facts, limit: Limit, name: str, used: int, most: int) -> Symptom:
    text = f"{used:,} {limit.what} of at most {most:,} ({name})"
    known = {"what": limit.what, "limit": name, "used": used, "most": most, "source": limit.used[0]}
    severity: Severity = "critical" if used >= LIMIT_FULL_RATIO * most else "warning"
    return Symptom(
        DETECTOR, facts.start_us, facts.end_us, text, severity, group=limit.what, facts=known, subject="memory",
        cores=frozenset(),
    )  # fmt: skip


DETECTOR = Detector(
    kind="near_limit",
    title="a table of the kernel is nearly full",
    reported_when="tasks or open files are at 85% of what the kernel allows; critical from 97% on",
    find=find,
    source="counters",
    role="victim",
    about="memory",
    begins="window",
    has_hog=False,
)
