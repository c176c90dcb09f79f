"""From a recording of some seconds, its surroundings and the audit of the node to a check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from zombiescope.audit.surroundings import Surroundings
from zombiescope.base.missing import Missing
from zombiescope.diagnosis import diagnose, leak
from zombiescope.diagnosis.check.check import Audited, CgroupState, Check, Hogs, Network, Stall
from zombiescope.diagnosis.check.cores import Holder, TickSpan, held_cores, holder
from zombiescope.diagnosis.check.findings import findings
from zombiescope.diagnosis.check.sources import gathered, seen
from zombiescope.diagnosis.check.units import units
from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.symptoms import kernel_hog, ksoftirqd_waits, machine_stall, rt_hog, stall, throttled
from zombiescope.diagnosis.task_groups import members
from zombiescope.query.cgroups import growth, makers
from zombiescope.query.cost import Cost, recorder_cost
from zombiescope.query.events import events
from zombiescope.query.node_counters import cards, pressure, reclaim, softnet
from zombiescope.store.columns import numbers
from zombiescope.store.event import Event
from zombiescope.store.reader import Recording

MAKERS_FOLLOWED = 8
"""Of so many lines, those that moved most, it is looked up who asked for them."""


def examine(recording: Recording, around: Surroundings, audit: Audited) -> Check | None:
    """None when the recording has no tick: then nothing was seen at all."""
    window = window_of(recording)
    if window is None:
        return None
    facts = Facts(recording, window.start_us, window.end_us + 1)
    cost = recorder_cost(recording, window.start_us, window.end_us + 1)
    missing = gathered(recording.node.get("missing"), [*around.missing, *_lost(cost), *audit.missing])
    lacking, sources = {one.source for one in missing}, seen(missing)
    found = diagnose.examine(facts, beside=_stopped(around, window))
    happened = tuple(events(recording, window.start_us, window.end_us + 1_000_000))
    return Check(
        node=recording.name,
        kernel=recording.node.get("kernel"),
        window=window,
        diagnosis=found,
        cores=held_cores(facts, window),
        stalls=tuple(_stalls(facts, found)) if sources["stack samples"] else (),
        hogs=_hogs(facts, found),
        pressure=pressure(facts.sums, window.seconds, lacking),
        reclaim=reclaim(facts.sums, window.seconds, lacking),
        cgroups=_cgroups(facts, window, traced=sources["cgroup tracepoints"]),
        network=Network(
            None if "netdev" in lacking else cards(facts.node, facts.sums),
            None if "softnet" in lacking else softnet(recording, window.start_us, window.end_us),
        ),
        units=units(happened, audit.running),
        events=happened,
        surroundings=around,
        audit=_without_what_happened_now(audit, happened),
        missing=missing,
        sources=sources,
        cost=cost,
        findings=findings(found, sampled=sources["stack samples"]),
    )


def window_of(recording: Recording) -> TickSpan | None:
    """What the ticks cover; None when there is no tick."""
    rows = recording.table("cores", columns=("time", "interval_us"))
    if not len(rows):
        return None
    ends = numbers(rows.column("time"))
    return TickSpan(int((ends - numbers(rows.column("interval_us"))).min()), int(ends.max()))


def _stopped(around: Surroundings, window: TickSpan) -> list[Symptom]:
    """The recorder reads quotas too seldom for ten seconds; so they were read before and after."""
    span_us = window.end_us - window.start_us
    return [
        symptom
        for one in around.throttled or ()
        for symptom in throttled.stopped(
            one.cgroup, one.periods, one.throttled, round(one.seconds * 1e6), span_us, (window.start_us, window.end_us)
        )
    ]


def _cgroups(facts: Facts, window: TickSpan, *, traced: bool) -> CgroupState:
    view = facts.cgroups
    grown = growth(facts.recording, view.memory, window.start_us, window.end_us)
    lines = makers(view.leaks) if traced else None
    asked = {line.path: leak.requested_by(facts, line) for line in (lines or ())[:MAKERS_FOLLOWED]}
    return CgroupState(view, grown, lines, {path: who for path, who in asked.items() if who is not None})


def _without_what_happened_now(audit: Audited, happened: tuple[Event, ...]) -> Audited:
    """What the kernel logged in the window is a finding of the window already."""
    now = {f"kernel-log:{event.kind}" for event in happened}
    return replace(audit, findings=tuple(finding for finding in audit.findings if finding.id not in now))


def _lost(cost: Cost | None) -> list[Missing]:
    if cost is None or not cost.lost:
        return []
    why = f"{cost.lost} records did not fit into the rings"
    return [Missing("stack samples (in part)", why, "nothing: totals stay exact, numbers of a path are a lower bound")]


# --- who, for the figures ----------------------------------------------------------------------------------------


def _stalls(facts: Facts, found: Diagnosis) -> list[Stall]:
    """Longest first."""
    made = []
    for symptom in _every(found):
        gap_us, waited_us = symptom.facts.get("gap_us"), symptom.facts.get("waited_us")
        if symptom.detector is ksoftirqd_waits.DETECTOR:
            made.append(_stall(facts, symptom, "ksoftirqd", waited_us))
        elif gap_us is not None and symptom.detector in (stall.DETECTOR, machine_stall.DETECTOR):
            made.append(_stall(facts, symptom, "no_samples", gap_us))
        elif symptom.detector is stall.DETECTOR:
            made.append(_stall(facts, symptom, "held", symptom.facts["longest_us"]))
    return sorted(made, key=lambda one: (-one.seconds, one.cpu or 0))


def _stall(facts: Facts, symptom: Symptom, kind: str, length_us: int | None) -> Stall:
    there = facts.samples.where(symptom.from_us, symptom.to_us, symptom.cpu)
    chosen = there & facts.samples.in_kernel
    hog = None if symptom.cpu is None else holder(facts.samples, chosen if chosen.any() else there)
    return Stall(kind, symptom.cpu, symptom.from_us, (length_us or 0) / 1e6, hog)


def _hogs(facts: Facts, found: Diagnosis) -> Hogs:
    in_kernel = [one for one in _every(found) if one.detector is kernel_hog.DETECTOR]
    real_time = [one for one in _every(found) if one.detector is rt_hog.DETECTOR]
    alone = [one for one in in_kernel if one.facts["level"] == "thread"]
    return Hogs(
        _holders(facts, alone),
        _holders(facts, [one for one in in_kernel if one not in alone]),
        _holders(facts, real_time),
    )


def _holders(facts: Facts, hogs: list[Symptom]) -> tuple[Holder, ...]:
    made = [_hog(facts, one) for one in sorted(hogs, key=lambda one: -one.seconds)]
    return tuple(one for one in made if one is not None)


def _hog(facts: Facts, symptom: Symptom) -> Holder | None:
    grid = facts.samples
    chosen = grid.where(symptom.from_us, symptom.to_us) & members(grid, symptom)
    made = holder(grid, chosen)
    tasks = np.unique(grid.task[chosen]).tolist()
    pids = len({grid.task_of(task).pid for task in tasks})
    return None if made is None else replace(made, longest_s=symptom.seconds, pids=max(1, pids))


def _every(found: Diagnosis) -> Iterator[Symptom]:
    for incident in found.incidents:
        yield from incident.symptoms
    yield from found.remarks
