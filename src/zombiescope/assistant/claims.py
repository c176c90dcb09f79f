"""`check`: is a claim about a recording supported, refuted, or not measured.

A claim names what it is about (core, process, function, unit, event, incident), when, and how much. It is compared with
the recording itself, never with an earlier answer. Blind is not refuted: where a source has a gap, or a name was never
recorded, the verdict is "not_measured" and says why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from zombiescope.assistant.answers import Diagnosed, actor
from zombiescope.assistant.fact import number
from zombiescope.base.errors import QuestionError
from zombiescope.documents.selection import load_stacks, selected
from zombiescope.query.cgroups import cgroups
from zombiescope.query.cores import cores
from zombiescope.query.events import events
from zombiescope.query.rate import rate
from zombiescope.query.selection import Filters, Selection
from zombiescope.query.who import who_ran
from zombiescope.questions.views import DiagnoseQuestion
from zombiescope.questions.window import Window, WindowQuestion
from zombiescope.store.loss import SAMPLES
from zombiescope.store.reader import Recording

Verdict = Literal["supported", "refuted", "not_measured"]
Comparison = Literal["about", "at_least", "at_most"]
SampleMeasure = Literal["cpu_seconds", "cores_used", "samples"]
ModeMeasure = Literal["busy", "user", "nice", "system", "irq", "softirq", "steal", "iowait", "idle"]
CoreMeasure = Literal["longest_saturation_s"] | ModeMeasure
CensusMeasure = Literal["memory_cgroups", "live_cgroups", "dying_cgroups"]
Measure = SampleMeasure | CoreMeasure | CensusMeasure | Literal["events"]

MODES: tuple[str, ...] = get_args(ModeMeasure)
MEASURES: tuple[str, ...] = (
    *get_args(SampleMeasure), "longest_saturation_s", *MODES, *get_args(CensusMeasure), "events",
)  # fmt: skip
ABOUT = 0.1
"""How far "about" may be off, as a share of the value that was measured."""
FEW_SAMPLES = 2.0
"""A sample more or less decides nothing."""
RATIO_STEP = 0.01
_BLINDS = (SAMPLES, "ticks", "recorder")
"""Sources whose gap means that no stack was sampled."""


@dataclass(frozen=True, slots=True)
class Claim:
    core: int | None = None
    pid: int | None = None
    process: str | None = None
    unit: str | None = None
    container: str | None = None
    function: str | None = None
    event: str | None = None
    incident: str | None = None
    pattern: str | None = None
    hog: str | None = None
    culprit: str | None = None
    measure: str | None = None
    value: float | None = None
    comparison: Comparison = "about"

    @property
    def on_samples(self) -> bool:
        return any(part is not None for part in (self.pid, self.process, self.unit, self.container, self.function))


@dataclass(frozen=True, slots=True)
class Checked:
    verdict: Verdict
    because: str
    value: float | str | None = None
    """What was measured, whatever the verdict."""


def check(recording: Recording, when: WindowQuestion, claim: Claim, diagnosed: Diagnosed) -> Checked:
    """Raises QuestionError where the claim cannot be understood."""
    _refuse_unclear(claim)
    if claim.incident is not None or claim.pattern or claim.hog or claim.culprit:
        return _of_incident(claim, diagnosed(DiagnoseQuestion(window=when)))
    window = when.choose(recording)
    if window.end_us <= recording.start_us or window.start_us > recording.end_us:
        held = Window(recording.start_us, recording.end_us + 1, window.zone).heading()
        return Checked("not_measured", f"the recording holds {held}")
    if claim.core is not None and (refused := _no_such_core(recording, claim.core)) is not None:
        return refused
    return _judge(recording, window, claim)


def _refuse_unclear(claim: Claim) -> None:
    if claim.measure is not None and claim.measure not in MEASURES:
        raise QuestionError(f"{claim.measure!r} is not a measure", f"write {', '.join(MEASURES)}", option="measure")
    if (claim.value is None) != (claim.measure is None):
        raise QuestionError("a number needs both its measure and its value", None, option="measure")
    if claim.comparison not in get_args(Comparison):
        known = ", ".join(get_args(Comparison))
        raise QuestionError(f"{claim.comparison!r} is not a comparison", f"write {known}", option="comparison")
    if claim == Claim():
        raise QuestionError("the claim is empty", "name a core, process, function, unit, event, incident or measure")


def _judge(recording: Recording, window: Window, claim: Claim) -> Checked:
    if claim.event is not None or claim.measure == "events":
        return _of_events(recording, window, claim)
    if claim.measure in get_args(CensusMeasure):
        return _of_census(recording, window, claim)
    if claim.measure in (*MODES, "longest_saturation_s"):
        if claim.on_samples:
            what = f"{claim.measure} is measured by core, not by process"
            raise QuestionError(what, "leave out the process", option="measure")
        return _of_core(recording, window, claim)
    return _of_samples(recording, window, claim)


def _no_such_core(recording: Recording, core: int) -> Checked | None:
    cpus = recording.node.get("cpus")
    known = cpus.get("possible") if isinstance(cpus, dict) else None
    if isinstance(known, int) and core >= known:
        return Checked("refuted", f"the highest number of a core of this node is {known - 1}", known - 1)
    return None


def _compare(claim: Claim, found: float, unit: str, what: str, slack: float = 0.0) -> Checked:
    """`slack`: what a measurement of this kind cannot tell apart."""
    assert claim.value is not None
    off = max(slack, ABOUT * abs(found))
    holds = {
        "about": abs(claim.value - found) <= off,
        "at_least": found + slack >= claim.value,
        "at_most": found - slack <= claim.value,
    }[claim.comparison]
    value = found if isinstance(found, int) else round(found, 4)
    return Checked("supported" if holds else "refuted", f"{what}: {number(value)}{unit}", value)


# --- samples ----------------------------------------------------------------------------------------------------------


def _of_samples(recording: Recording, window: Window, claim: Claim) -> Checked:
    filters = _filters(claim)
    chosen = _selected(recording, window, filters)
    count = _count(chosen)
    if not count and (blind := _blind(recording, window, claim, filters)) is not None:
        return blind
    what = _subject(claim)
    if claim.measure is None:
        if count:
            return Checked("supported", f"{what}: {count:,} samples{_seconds(chosen, count)}", count)
        return Checked("refuted", f"{what}: no sample; {_instead(recording, window, claim)}", 0)
    if claim.measure == "samples":
        return _compare(claim, count, "", what, FEW_SAMPLES)
    hz = rate(chosen)
    if not hz:
        return Checked("not_measured", "the rate of sampling is not known")
    if claim.measure == "cpu_seconds":
        return _compare(claim, count / hz, " CPU-seconds", what, FEW_SAMPLES / hz)
    elapsed = max(1e-6, (chosen.end_us - chosen.start_us) / 1e6)
    return _compare(claim, count / hz / elapsed, " cores", what, FEW_SAMPLES / hz / elapsed)


def _filters(claim: Claim) -> Filters:
    return Filters(
        cpus=frozenset() if claim.core is None else frozenset({claim.core}),
        pids=frozenset() if claim.pid is None else frozenset({claim.pid}),
        comms=() if claim.process is None else (_literal(claim.process),),
        units=() if claim.unit is None else (_literal(claim.unit),),
        containers=() if claim.container is None else (claim.container,),
        match=None if claim.function is None else re.compile(rf"^{re.escape(claim.function)}(?:$|[^\w])"),
    )


def _literal(name: str) -> str:
    """A name for a filter that takes * and ? for patterns: a claim is about one name."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def _selected(recording: Recording, window: Window, filters: Filters) -> Selection:
    return selected(recording, window, filters, load_stacks)


def _count(chosen: Selection) -> int:
    return int(chosen.counts().sum())


def _seconds(chosen: Selection, count: int) -> str:
    hz = rate(chosen)
    return f", {count / hz:.2f} CPU-seconds" if hz else ""


def _subject(claim: Claim) -> str:
    parts = [
        f"{name} {value}"
        for name, value in (
            ("process", claim.process), ("pid", claim.pid), ("unit", claim.unit), ("container", claim.container),
            ("in", claim.function), ("on core", claim.core),
        )
        if value is not None
    ]  # fmt: skip
    return " ".join(parts) or "all samples"


def _blind(recording: Recording, window: Window, claim: Claim, filters: Filters) -> Checked | None:
    """Why no sample passes although the claim may be true; None where it was looked for and not there."""
    start, end = max(window.start_us, recording.start_us), min(window.end_us, recording.end_us + 1)
    for gap in recording.gaps(start, end):
        if gap.source in _BLINDS and gap.from_us <= start and gap.to_us >= end:
            return Checked("not_measured", f"no stacks were sampled: {gap.why}")
    if not _any_samples(recording, window):
        return Checked("not_measured", "no stack was sampled in this window")
    for name, widened in (("unit", replace(filters, units=())), ("container", replace(filters, containers=()))):
        if getattr(claim, name) is None:
            continue
        others = _selected(recording, window, widened)
        ran = who_ran(others, "thread", 1_000)
        if ran.total and not any(getattr(one.group, name) for one in ran.ran):
            return Checked("not_measured", f"of these {ran.total:,} samples the {name} was not recorded")
    return None


def _any_samples(recording: Recording, window: Window) -> bool:
    return any(len(rows) for rows in recording.batches("samples", window.start_us, window.end_us, ("time",)))


def _instead(recording: Recording, window: Window, claim: Claim) -> str:
    """Who ran there."""
    chosen = _selected(recording, window, Filters(cpus=frozenset() if claim.core is None else frozenset({claim.core})))
    ran = who_ran(chosen, "process", 1)
    where = "" if claim.core is None else f" on core {claim.core}"
    return f"mostly {ran.ran[0].group.name} ran{where}" if ran.ran else f"no task was sampled{where}"


# --- cores, the census, events ----------------------------------------------------------------------------------------


def _of_core(recording: Recording, window: Window, claim: Claim) -> Checked:
    view = cores(recording, window.start_us, window.end_us)
    core = next((one for one in view.cores if one.cpu == claim.core), None)
    where = "all cores" if claim.core is None else f"core {claim.core}"
    if claim.measure == "longest_saturation_s":
        asked = view.cores if claim.core is None else () if core is None else (core,)
        known = [one.longest_saturation_s for one in asked if one.longest_saturation_s is not None]
        if not known:
            return Checked("not_measured", f"{where}: its time was not measured in this window")
        what = f"{where}: longest time that the kernel held it"
        return _compare(claim, max(known), " s", what, view.interval_s or 0.0)
    modes: Any = view.aggregate if claim.core is None else None if core is None else core.modes
    found = None if modes is None else getattr(modes, str(claim.measure), None)
    if found is None:
        return Checked("not_measured", f"{where}: {claim.measure} was not measured in this window")
    return _compare(claim, float(found), "", f"{where}: {claim.measure} as a ratio of time", RATIO_STEP)


def _of_census(recording: Recording, window: Window, claim: Claim) -> Checked:
    memory = cgroups(recording, window.start_us, window.end_us).memory
    name = {"memory_cgroups": "total", "live_cgroups": "live", "dying_cgroups": "dying"}[str(claim.measure)]
    found = None if memory is None else getattr(memory, name)
    if found is None:
        return Checked("not_measured", "the memory cgroups were not counted in this window")
    return _compare(claim, found, " memory cgroups", f"{name} at the end of the window")


def _of_events(recording: Recording, window: Window, claim: Claim) -> Checked:
    kinds = None if claim.event is None else (claim.event,)
    found = len(events(recording, window.start_us, window.end_us, kinds=kinds))
    what = f"events of kind {claim.event}" if claim.event else "events"
    if claim.measure == "events":
        return _compare(claim, found, "", what)
    return Checked("supported" if found else "refuted", f"{what}: {found:,}", found)


# --- the diagnosis ----------------------------------------------------------------------------------------------------


def _of_incident(claim: Claim, document: Mapping[str, Any]) -> Checked:
    """A claim about an actor holds for the first cause: that is what the report says."""
    known = [one for one in document["incidents"] if str(one["id"]).startswith(claim.incident or "")]
    if not known:
        what = "there is no incident in this window"
        what = what if claim.incident is None else f"no incident here has the id {claim.incident}"
        return Checked("refuted", what, len(document["incidents"]))
    found = [(one, _misses(claim, one)) for one in known]
    for one, misses in found:
        if not misses:
            return Checked("supported", f"incident {one['id']}: {_cause_of(one)}", str(one["id"]))
    one, misses = found[0]
    return Checked("refuted", f"incident {one['id']}: {'; '.join(misses)}", _cause_of(one))


def _cause_of(incident: Mapping[str, Any]) -> str:
    causes = incident.get("causes") or ()
    return str(causes[0]["pattern"]) if causes else "the cause is not known"


def _misses(claim: Claim, incident: Mapping[str, Any]) -> list[str]:
    cause: Mapping[str, Any] = (incident.get("causes") or ({},))[0]
    misses = []
    if claim.pattern is not None and cause.get("pattern") != claim.pattern:
        misses.append(f"the cause is {cause.get('pattern') or 'not known'}, not {claim.pattern}")
    for role, name in (("hog", claim.hog), ("culprit", claim.culprit)):
        if name is not None and name not in _names(cause.get(role)):
            misses.append(f"the {role} is {actor(cause.get(role)) or 'not known'}, not {name}")
    return misses + _misses_when(claim, incident)


def _misses_when(claim: Claim, incident: Mapping[str, Any]) -> list[str]:
    """Which of its symptoms are on the core that the claim names."""
    if claim.core is None:
        return []
    there = {one.get("cpu") for one in incident.get("symptoms", ())}
    return [] if claim.core in there else [f"no symptom is on core {claim.core}"]


def _names(known: Mapping[str, Any] | None) -> set[str]:
    keys: tuple[str, ...] = ("comm", "unit", "cgroup", "container", "container_name", "pod", "pod_name", "image", "pid")
    return {str(known[key]) for key in keys if known.get(key) is not None} if known else set()
