"""Tasks that waited for memory, a disk, interrupts or a core, as the kernel adds it up (PSI).

"some" is the part of the time in which at least one task waited, "full" that in which every runnable task did.
"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.base.severity import Severity
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.query.node_counters import pressure

LIMITS: tuple[tuple[str, str, float, Severity, str], ...] = (
    ("memory", "full", 0.3, "critical", "every runnable task was stalled on memory"),
    ("memory", "full", 0.05, "warning", "every runnable task was stalled on memory"),
    ("memory", "some", 0.1, "warning", "some task waited for memory"),
    ("io", "full", 0.3, "warning", "every runnable task was stalled on a disk"),
    ("irq", "full", 0.1, "warning", "tasks waited for interrupts to be served"),
    ("cpu", "some", 0.5, "info", "some task waited for a core (how many, this does not say)"),
)
"""Resource, kind, from which part of the time on, severity, words; of each resource the first that holds."""


def find(facts: Facts) -> Iterator[Symptom]:
    measured = pressure(facts.sums, facts.seconds)
    reported = set()
    for resource, kind, least, severity, words in LIMITS:
        ratio = getattr(measured[resource], kind)
        if ratio is None or ratio < least or resource in reported:
            continue
        reported.add(resource)
        yield Symptom(
            DETECTOR,
            facts.start_us,
            facts.end_us,
            f"for {ratio * facts.seconds:.1f} s of {facts.seconds:.0f} s {words}",
            severity,
            group=resource,
            facts={"counter": kind, "ratio": ratio, "threshold": least},
            finding=f"pressure-{resource}",
        )


DETECTOR = Detector(
    kind="pressure",
    title="tasks waited",
    reported_when="memory stalled some task for 10% of the time or every runnable task for 5% (critical from 30% "
    "on), a disk every runnable task for 30%, or interrupts for 10%; a core for 50% is a note",
    find=find,
    source="counters",
    role="victim",
    begins="window",
    has_hog=False,
    is_remark=True,
)
