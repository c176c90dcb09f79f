"""What the kernel, systemd or a job said by itself: NIC resets, lockups, stalls, OOM kills, crash loops, dead jobs.

Warnings and worse; the same words of the same source within a few seconds are one symptom with a count. The many lines
that the kernel prints below one that is known (registers, a call trace, the table of all tasks) say nothing by
themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

import numpy as np

from zombiescope.base.severity import Severity
from zombiescope.diagnosis import gpu_faults
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.gpu_faults import GpuStory
from zombiescope.diagnosis.symptom import THINGS, Detector, Symptom
from zombiescope.diagnosis.thresholds import EVENT_REPORT_US, EVENTS_TOGETHER_US
from zombiescope.kernel import log_kinds
from zombiescope.store.columns import Ints
from zombiescope.store.event import Event

REPORTS = frozenset({"kernel_log", "kernel_warning"})
_POLLED_THERE = "napi CPU"
"""Where a driver says which core its queue is polled on. Others say on which core they noticed."""
_HARMLESS = frozenset(
    {
        "mark", "cgroup_churn", "unit_restart", "container_restart", "clock_step", "lookup_stuck", "helper_failed",
        "frozen_given_up", "gpu_throttled", "kernel_log_gap", "tasks_stopped", "tasks_wait",
    }
)  # fmt: skip
"""What the recorder says about itself, and what other detectors report."""


def find(facts: Facts) -> Iterator[Symptom]:
    yield from (_gpu(story) for story in gpu_faults.stories(facts.events, facts.gpu_job))
    serious = _without_reports([one for one in facts.events if _is_serious(one)])
    places = groupby(sorted(serious, key=_place), key=_place)
    found = [_symptom(facts, burst) for _, same in places for burst in _bursts(list(same))]
    by_device = [one for one in found if one.facts.get("reset_reason") in log_kinds.DEVICE_REASONS]
    for one in found:
        yield replace(one, cores=frozenset()) if any(_same_reset(one, other) for other in by_device) else one


def _gpu(story: GpuStory) -> Symptom:
    """All that the driver said about one GPU."""
    first, verdict = story.leading.first, story.verdict
    more = f" (and {story.count - 1:,} more)" if story.count > 1 else ""
    return Symptom(
        DETECTOR,
        story.from_us,
        story.to_us,
        f"{first.text}{more}",
        verdict.severity,
        facts={
            "event": first.kind, "source": first.source, "count": story.count, **first.fields, "xid": verdict.code,
            "codes": [one.document() for one in story.faults], "blame": verdict.blame, "action": verdict.action,
            "because": verdict.because, "do": verdict.do,
        },
        heading=log_kinds.title(first.kind),
        finding=first.kind,
        subject=log_kinds.about(first.kind),
    )  # fmt: skip


def _symptom(facts: Facts, burst: list[Event]) -> Symptom:
    first = _leading(burst)
    count = sum(int(event.fields.get("held") or 1) for event in burst if not event.fields.get("continued"))
    more = f" (and {count - 1:,} more)" if count > 1 else ""
    fields = {key: value for event in reversed(burst) for key, value in event.fields.items()}
    return Symptom(
        DETECTOR,
        burst[0].at_us,
        burst[-1].at_us,
        f"{first.text}{more}",
        _severity(burst),
        _cpu(first),
        facts={"event": first.kind, "source": first.source, "count": count, **fields, **first.fields},
        heading=log_kinds.title(first.kind),
        finding=first.kind.replace("unit_", "unit-"),
        subject=log_kinds.about(first.kind),
        cores=_served_by(facts, burst),
    )


def _same_reset(one: Symptom, other: Symptom) -> bool:
    """Lines of one reset, of which one names the device as the reason: then it came from no core."""
    if one.about != "network" or max(one.from_us, other.from_us) - min(one.to_us, other.to_us) > EVENTS_TOGETHER_US:
        return False
    cards = {one.facts.get("interface"), other.facts.get("interface")} - {None}
    return len(cards) < 2


def _is_serious(event: Event) -> bool:
    """A line that nobody has listed is none below critical, also in recordings that called it a warning."""
    if event.kind == "kernel_log":
        return event.severity == "critical"
    if event.kind == gpu_faults.KIND and isinstance(event.fields.get("xid"), int):
        return False  # these are told together
    return event.severity != "info" and event.kind not in _HARMLESS


def _severity(burst: list[Event]) -> Severity:
    """A driver that says in its text that nothing was fatal is believed."""
    if any(event.severity == "critical" and event.fields.get("fatal") != 0 for event in burst):
        return "warning" if _says_nothing_is_fatal(burst) else "critical"
    return "warning"


def _says_nothing_is_fatal(burst: list[Event]) -> bool:
    said = [event.fields["fatal"] for event in burst if "fatal" in event.fields]
    return bool(said) and not any(said) and all("fatal" in one.fields or one.fields.get("continued") for one in burst)


def _leading(burst: list[Event]) -> Event:
    return next((event for event in burst if event.fields.get("fatal") == 1), burst[0])


def _served_by(facts: Facts, burst: list[Event]) -> frozenset[int] | None:
    """The cores that serve the card; None where that was not recorded, or where it is not known which card it is."""
    if log_kinds.about(burst[0].kind) != "network":
        return None
    polled = {_number(event.fields.get("cpu")) for event in burst if _POLLED_THERE in event.text} - {None}
    if polled:
        return frozenset(cpu for cpu in polled if cpu is not None)
    named = {str(event.fields["interface"]) for event in burst if event.fields.get("interface")}
    if len(named) > 1:
        return None
    nic = next(iter(named), None)
    queues = {(_number(event.fields.get("queue")), event.at_us) for event in burst}
    exact = [facts.served_by(nic, queue, at_us) for queue, at_us in queues if queue is not None]
    if exact and all(cores is not None for cores in exact):
        return frozenset(cpu for cores in exact if cores is not None for cpu in cores)
    return facts.served_by(nic)


def _without_reports(events: list[Event]) -> list[Event]:
    logs = {one.source for one in events if one.kind in REPORTS}
    known = np.array(sorted(one.at_us for one in events if one.kind not in REPORTS and one.source in logs), np.int64)
    return [
        one for one in events if one.kind not in REPORTS or one.severity == "critical" or not _near(known, one.at_us)
    ]


def _near(known: Ints, at_us: int) -> bool:
    """Whether one of these times, in order, is less than a report away."""
    after = int(np.searchsorted(known, at_us))
    around = known[max(0, after - 1) : after + 1]
    return bool((np.abs(around - at_us) <= EVENT_REPORT_US).any())


def _place(event: Event) -> tuple[str, int, str]:
    """Two GPUs are two symptoms, and so are two cards."""
    cpu = _cpu(event)
    return (
        event.kind,
        -1 if cpu is None else cpu,
        next((str(event.fields[name]) for name in THINGS if event.fields.get(name)), ""),
    )


def _cpu(event: Event) -> int | None:
    return _number(event.fields.get("cpu")) if log_kinds.has_place(event.kind) else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _bursts(events: list[Event]) -> Iterator[list[Event]]:
    burst: list[Event] = []
    for event in sorted(events, key=lambda event: event.at_us):
        if burst and event.at_us - burst[-1].at_us > EVENTS_TOGETHER_US:
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
