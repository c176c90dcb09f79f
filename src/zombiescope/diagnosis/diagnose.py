"""From a recording to incidents: symptoms, grouped, each examined by every pattern.

A long window is looked through in two steps: the table `cores` and the events of all of it, which are small, say where
something happened; samples are read around those moments only, and now and then in between, for a hog that is always
there shows no step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from zombiescope.diagnosis import patterns, ranking, symptoms
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.core_grid import SECOND_US
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Cause, Incident, Severity, State
from zombiescope.diagnosis.incidents import Group, group
from zombiescope.diagnosis.spans import runs
from zombiescope.recording.reader import Recording

LONG_US = 600 * SECOND_US
"""Windows up to this are looked at whole."""
AROUND_US = 15 * SECOND_US
MAX_SPANS = 100
MAX_INCIDENTS = 50
LOST_S = 5.0
OPEN_US = 5 * SECOND_US


@dataclass(frozen=True, slots=True)
class Diagnosis:
    node: str
    from_us: int
    to_us: int
    incidents: tuple[Incident, ...]
    not_checked: tuple[str, ...]


def diagnose(recording: Recording, start_us: int, end_us: int, *, live: bool = False) -> Diagnosis:
    """Every incident of the window, the worst first."""
    whole = Facts(recording, start_us, end_us)
    found: list[Incident] = []
    for facts in _pieces(whole):
        for each in group(symptoms.find(facts)):
            found.append(_incident(facts, each, live))
    incidents = _recurring(found)
    incidents.sort(key=lambda incident: (-_rank(incident), incident.from_us))
    return Diagnosis(
        recording.name, whole.start_us, whole.end_us, tuple(incidents[:MAX_INCIDENTS]), tuple(_not_checked(whole))
    )


# --- long windows ------------------------------------------------------------------------------------------------


def _pieces(whole: Facts) -> Iterator[Facts]:
    if whole.end_us - whole.start_us <= LONG_US:
        yield whole
        return
    for from_us, to_us in _suspicious(whole):
        yield Facts(whole.recording, from_us, to_us)


def _suspicious(whole: Facts) -> list[tuple[int, int]]:
    """Spans in which a core was lost, the kernel's share took a step, or something was said."""
    moments: list[tuple[int, int]] = [(event.at_us, event.at_us) for event in whole.events if event.severity != "info"]
    cores = whole.cores
    if cores is not None:
        kernel = np.nan_to_num(cores.kernel)
        total = kernel.sum(axis=0)
        step = total - np.median(total) >= 0.8
        hole = cores.holes_us.max(axis=0) >= 100_000
        stolen = np.nan_to_num(cores.ratios["steal"]).max(axis=0) >= 0.3
        hot = (kernel.max(axis=0) >= 0.9) | step | hole | stolen
        moments += [(cores.at_us(first), cores.at_us(last)) for first, last in runs(hot, bridge=10)]
    moments += [(at, at) for at in range(whole.start_us, whole.end_us, LONG_US)]
    return _merged(sorted((from_us - AROUND_US, to_us + AROUND_US) for from_us, to_us in moments))


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for from_us, to_us in spans:
        if merged and from_us <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], to_us))
        else:
            merged.append((from_us, to_us))
    longest = sorted(merged, key=lambda span: span[0] - span[1])[:MAX_SPANS]
    return sorted(longest)


# --- one incident ------------------------------------------------------------------------------------------------


def _incident(facts: Facts, each: Group, live: bool) -> Incident:
    case = Case(facts, each)
    causes, ruled_out = ranking.rank(case, list(patterns.every()))
    state: State = "open" if live and each.to_us >= facts.end_us - OPEN_US else "closed"
    return Incident(
        each.identity(facts.recording.name, facts.recording.boot_at(each.from_us) or ""),
        each.from_us,
        each.to_us,
        state,
        _severity(each, causes),
        each.symptoms,
        causes,
        ruled_out,
    )


def _severity(each: Group, causes: tuple[Cause, ...]) -> Severity:
    """Critical: something said so, or a confirmed cause took a core for as long as a network driver waits."""
    if each.severity == "critical":
        return "critical"
    confirmed = (
        bool(causes) and causes[0].pattern != ranking.FALLBACK and causes[0].confidence > ranking.UNCONFIRMED_MOST
    )
    lost = [symptom for symptom in each.symptoms if symptom.kind in ("core_saturated", "nic_starved")]
    if confirmed and any(symptom.seconds >= LOST_S for symptom in lost):
        return "critical"
    return "warning" if confirmed or each.severity == "warning" else "info"


def _recurring(found: list[Incident]) -> list[Incident]:
    """The same cause by the same hog and culprit again is the same incident."""
    first: dict[tuple[str, ...], int] = {}
    kept: list[Incident] = []
    for incident in sorted(found, key=lambda incident: incident.from_us):
        key = _sameness(incident)
        if key is None or key not in first:
            if key is not None:
                first[key] = len(kept)
            kept.append(incident)
            continue
        before = kept[first[key]]
        kept[first[key]] = replace(
            before,
            severity=before.severity if _rank(before) >= _rank(incident) else incident.severity,
            state=incident.state,
            recurrences=(*before.recurrences, incident.from_us),
        )
    return kept


def _sameness(incident: Incident) -> tuple[str, ...] | None:
    if not incident.causes:
        return None
    cause = incident.causes[0]
    culprit = cause.culprit.name if cause.culprit else ""
    return cause.pattern, cause.hog.unit or cause.hog.comm or "", culprit


def _rank(incident: Incident) -> int:
    return ("info", "warning", "critical").index(incident.severity)


def _not_checked(facts: Facts) -> Iterator[str]:
    for entry in facts.missing:
        yield f"{entry.get('source')}: {entry.get('why')}"
    if facts.cores is None:
        yield "cores: no per-core counters in this window, so what each core did is known from its samples alone"
    if facts.cgroups.memory is None:
        yield "memory cgroups: they were not counted in this window"
    if facts.kernel is None:
        yield "kernel: its version is not known, so signatures of every kernel were tried"
    told = {str(entry.get("source")) for entry in facts.missing}
    for gap in [gap for gap in facts.gaps if gap.source not in told][:5]:
        yield f"{gap.source}: blind for {(gap.to_us - gap.from_us) / 1e6:.0f} s ({gap.why})"
