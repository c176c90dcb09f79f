"""What the kernel, systemd or a job said by itself: NIC resets, lockups, stalls, OOM kills, crash loops, dead jobs.

Warnings and worse; the same words of the same source within a few seconds are one symptom with a count. The many lines
that the kernel prints below one that is known (registers, a call trace, the table of all tasks) say nothing by
themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np

from zombiescope._severity import Severity
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.recording.columns import Ints
from zombiescope.recording.event import Event

TOGETHER_US = 10_000_000
REPORT = "kernel_log"
REPORT_US = 1_000_000
_TITLES = {
    "nic_reset": "network card reset",
    "nic_tx_timeout": "network card stopped sending",
    "nic_event": "network card starved",
    "rcu_stall": "RCU stall",
    "oom_kill": "killed for memory",
    "unit_failed": "a unit failed",
    "ray_node_dead": "Ray node declared dead",
    "ray_job_failed": "Ray job failed",
}
"""Where the name of the event does not read as a heading."""
_HARMLESS = frozenset({"mark", "cgroup_churn", "unit_restart", "container_restart"})


def find(facts: Facts) -> Iterator[Symptom]:
    serious = _without_reports([one for one in facts.events if one.severity != "info" and one.kind not in _HARMLESS])
    for (kind, cpu), same in groupby(sorted(serious, key=_place), key=_place):
        for burst in _bursts(list(same)):
            first, last = burst[0], burst[-1]
            more = f" (and {len(burst) - 1} more)" if len(burst) > 1 else ""
            severity: Severity = "critical" if any(event.severity == "critical" for event in burst) else "warning"
            yield Symptom(
                DETECTOR,
                first.at_us,
                last.at_us,
                f"{first.text}{more}",
                severity,
                cpu if cpu >= 0 else None,
                facts={"event": kind, "source": first.source, "count": len(burst), **first.fields},
                heading=_TITLES.get(kind, kind.replace("_", " ")),
                finding=kind.replace("unit_", "unit-"),
            )


def _without_reports(events: list[Event]) -> list[Event]:
    logs = {one.source for one in events if one.kind == REPORT}
    known = np.array(sorted(one.at_us for one in events if one.kind != REPORT and one.source in logs), np.int64)
    return [one for one in events if one.kind != REPORT or one.severity == "critical" or not _near(known, one.at_us)]


def _near(known: Ints, at_us: int) -> bool:
    """Whether one of these times, in order, is less than a report away."""
    after = int(np.searchsorted(known, at_us))
    around = known[max(0, after - 1) : after + 1]
    return bool((np.abs(around - at_us) <= REPORT_US).any())


def _place(event: Event) -> tuple[str, int]:
    cpu = event.fields.get("cpu")
    return event.kind, cpu if isinstance(cpu, int) else -1


def _bursts(events: list[Event]) -> Iterator[list[Event]]:
    burst: list[Event] = []
    for event in sorted(events, key=lambda event: event.at_us):
        if burst and event.at_us - burst[-1].at_us > TOGETHER_US:
            yield burst
            burst = []
        burst.append(event)
    if burst:
        yield burst


DETECTOR = Detector(
    kind="event",
    title="an event",
    reported_when="the kernel, systemd or a job said by itself that something is wrong",
    find=find,
    source="events",
    role="victim",
    weight=4,
)
