"""Incidents and remarks of a diagnosis as findings, in the shape of the audit's.

Every symptom is a finding. The one that an incident is about has the incident's severity, its hog, its cause and what
to do; the others have their own. Many of one kind are summed up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from zombiescope.audit.finding import EvidenceLine, Finding
from zombiescope.base.severity import rank
from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.incident import Actor, Cause, Incident
from zombiescope.diagnosis.incidents import Group
from zombiescope.diagnosis.pattern import FALLBACK
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.thresholds import UNCONFIRMED_MOST

PATH_FRAMES = 4
EXPLAINED_FRAMES = 1
"""Of a path whose meaning is said in words."""
ONE_BY_ONE = 3
_ENTRIES = (
    "entry_SYSCALL", "do_syscall_64", "x64_sys_call", "__x64_sys_", "__arm64_sys_", "invoke_syscall", "el0", "asm_",
    "ret_from_fork", "kthread", "do_el0_svc", "system_call_fastpath", "SyS_", "sys_",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WindowFinding(Finding):
    """`incident`, `pattern` and `hog`: of the incident that it is about or belongs to; None for a remark."""

    incident: str | None = None
    pattern: str | None = None
    hog: Actor | None = None


def findings(found: Diagnosis, *, sampled: bool) -> tuple[WindowFinding, ...]:
    """Worst first. `sampled` is False where nobody could be seen on a core."""
    every = [one for incident in found.incidents for one in _of_incident(incident, sampled)]
    every += [_of_symptom(symptom) for symptom in found.remarks]
    return tuple(sorted(_few(_each_once(every)), key=lambda one: -rank(one.severity)))


def _of_incident(incident: Incident, sampled: bool) -> Iterator[WindowFinding]:
    primary = Group(incident.symptoms).primary
    cause = incident.causes[0] if incident.causes else None
    yield _in(incident, _about(primary, incident, cause, sampled))
    for symptom in incident.symptoms:
        if symptom is not primary and not _is_implied(symptom, cause):
            yield _in(incident, _of_symptom(symptom, _by(symptom, cause, sampled)))


def _in(incident: Incident, made: WindowFinding) -> WindowFinding:
    cause = incident.causes[0] if incident.causes else None
    made = replace(made, incident=incident.id)
    return made if cause is None else replace(made, pattern=cause.pattern, hog=cause.hog)


def _about(primary: Symptom, incident: Incident, cause: Cause | None, sampled: bool) -> WindowFinding:
    made = replace(_of_symptom(primary, _by(primary, cause, sampled)), severity=incident.severity)
    if cause is None:
        return made
    if not _is_confirmed(cause):
        return replace(made, unit=cause.hog.unit, fix=_look_closer(primary))
    measured = (EvidenceLine(_place(link.source), None, link.fact) for link in cause.chain if link.step != "symptom")
    steps = (f"# {step}" if step.command is None else str(step) for step in cause.fix.steps)
    why = f"{made.why}; {cause.because}"
    return replace(made, unit=cause.hog.unit, why=why, evidence=(*made.evidence, *measured), fix=tuple(steps))


def _of_symptom(symptom: Symptom, by: str = "") -> WindowFinding:
    text = " ".join(symptom.text.split())
    shown = f"{text}; reported when {symptom.detector.reported_when}"
    return WindowFinding(
        id=f"{symptom.rule}:{_where(symptom)}",
        rule=symptom.rule,
        unit=symptom.facts.get("unit"),
        severity=symptom.severity,
        why=text + by,
        evidence=(EvidenceLine(_place(symptom.detector.source), None, shown),),
        fix=(),
    )


def _where(symptom: Symptom) -> object:
    places = (symptom.facts.get("counter"), symptom.cpu, symptom.group)
    return next((place for place in places if place is not None), "now")


def _place(table: str | None) -> str:
    return f"recording: {table}"


def _is_implied(symptom: Symptom, cause: Cause | None) -> bool:
    """That the hog was in the kernel is said with the core that it held."""
    return cause is not None and symptom.detector.names_hog and symptom.facts.get("comm") == cause.hog.comm


def _look_closer(symptom: Symptom) -> tuple[str, ...]:
    if not symptom.detector.is_onset:
        return ()
    core = "" if symptom.cpu is None else f" --cpu {symptom.cpu}"
    return ("zombiescope record DIR --for 1m", f"zombiescope flamegraph DIR{core}", "# shows where the time goes")


# --- who, in which kernel path -----------------------------------------------------------------------------------


def _by(symptom: Symptom, cause: Cause | None, sampled: bool) -> str:
    """ ": kubelet (pid 1201, kubelet.service) in mem_cgroup_iter <- ..."."""
    if not symptom.detector.core_is_held and symptom.detector.joins != "migrating":
        return ""
    if not sampled:
        return "; who cannot be seen"
    if cause is None or cause.hog == Actor():
        return ": no task was sampled there"
    most = EXPLAINED_FRAMES if _is_confirmed(cause) else PATH_FRAMES
    return f": {_who(cause.hog)}{_in_path(cause.frames, most)}"


def _is_confirmed(cause: Cause) -> bool:
    return cause.pattern != FALLBACK and cause.confidence > UNCONFIRMED_MOST


def _who(hog: Actor) -> str:
    details = [f"pid {hog.pid}"] if hog.pid else []
    details += [name for name in (hog.unit or hog.container,) if name]
    return f"{hog.comm or hog.cgroup or '?'}" + (f" ({', '.join(details)})" if details else "")


def _in_path(frames: tuple[str, ...], most: int) -> str:
    """Innermost first."""
    path = inner(frames)
    more = " <- ..." if len(path) > most == PATH_FRAMES else ""
    return f" in {' <- '.join(path[::-1][:most])}{more}" if path else ""


def inner(path: tuple[str, ...]) -> tuple[str, ...]:
    """The path without the frames that every system call and every interrupt has."""
    kept = tuple(name for name in path if not name.startswith(_ENTRIES))
    return kept or path[-1:]


# --- not too many ------------------------------------------------------------------------------------------------


def _each_once(every: Iterable[WindowFinding]) -> Iterator[WindowFinding]:
    """Of one place the worst, with how many more there were."""
    by_id: dict[str, list[WindowFinding]] = {}
    for one in every:
        by_id.setdefault(one.id, []).append(one)
    for same in by_id.values():
        worst = max(same, key=lambda one: rank(one.severity))
        yield worst if len(same) == 1 else replace(worst, why=f"{worst.why} (and {len(same) - 1} more)")


def _few(every: Iterable[WindowFinding]) -> Iterator[WindowFinding]:
    by_rule: dict[str, list[WindowFinding]] = {}
    for one in sorted(every, key=lambda one: -rank(one.severity)):
        by_rule.setdefault(one.rule, []).append(one)
    for same in by_rule.values():
        shown, more = same[:ONE_BY_ONE], same[ONE_BY_ONE:]
        yield from shown if len(more) != 1 else same
        if len(more) > 1:
            places = ", ".join(one.id.partition(":")[2] for one in more[:12]) + (" ..." if len(more) > 12 else "")
            why = f"{len(more)} more of {more[0].rule} ({places}), the worst of them: {more[0].why}"
            yield replace(more[0], id=f"{more[0].rule}:more", why=why)
