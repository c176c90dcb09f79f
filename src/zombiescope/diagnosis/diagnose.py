"""From a recording to incidents: symptoms, grouped, each examined by every pattern.

A long window is looked through in two steps: what is small of all of it says where something happened (moments.py), and
samples are read around those moments only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from zombiescope.base.severity import Severity, rank
from zombiescope.diagnosis import delayed, moments, patterns, python_waits, ranking, symptoms, tried
from zombiescope.diagnosis.alike import Alike, Explained
from zombiescope.diagnosis.bursts import rises, slowings
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.gpu_cost import cost_of
from zombiescope.diagnosis.gpu_loss import GpuCost
from zombiescope.diagnosis.incident import Cause, Incident, Link, State, worst
from zombiescope.diagnosis.incidents import Group, another_id, group, is_moderate
from zombiescope.diagnosis.order import is_explained, is_news, ordered
from zombiescope.diagnosis.pattern import FALLBACK
from zombiescope.diagnosis.presence import Presence
from zombiescope.diagnosis.ray_jobs import KINDS, RayJobs, Reach
from zombiescope.diagnosis.symptom import Symptom, event_thing
from zombiescope.diagnosis.symptoms import memory_cgroups
from zombiescope.diagnosis.thresholds import (
    INCIDENT_OPEN_US,
    JOIN_NEAR_US,
    LOST_CORE_WARNING_S,
    LOST_CORES,
    RAY_FAILS_AFTER_US,
    RAY_JOBS_KNOWN_US,
    UNCONFIRMED_MOST,
    WINDOW_LONG_US,
    ZOMBIES_SHOWN,
)
from zombiescope.query.events import events
from zombiescope.query.incidents import incidents as found_live
from zombiescope.store.reader import Recording

MAX_INCIDENTS = 50
NOTED_OF_A_KIND = 3


@dataclass(frozen=True, slots=True)
class Diagnosis:
    node: str
    from_us: int
    to_us: int
    incidents: tuple[Incident, ...]
    not_checked: tuple[str, ...]
    blind: bool = False
    """Neither cores nor stacks were recorded: that nothing was found means nothing."""
    noted: tuple[str, ...] = ()
    """What a reader should know although it is no incident."""
    remarks: tuple[Symptom, ...] = ()
    """Symptoms that are part of no incident, the worst of each kind and place."""
    ray_jobs: dict[str, str] = field(default_factory=dict)
    """How each Ray job that was on the node ended: failed, succeeded, stopped; or running."""


Progress = Callable[[int, int], object]
"""Told how many of how many parts of the window were looked at."""


def diagnose(
    recording: Recording, start_us: int, end_us: int, *, live: bool = False, progress: Progress | None = None
) -> Diagnosis:
    """Every incident of the window, the worst first."""
    return examine(Facts(recording, start_us, end_us), live=live, progress=progress)


def examine(
    whole: Facts, *, beside: Sequence[Symptom] = (), live: bool = False, progress: Progress | None = None
) -> Diagnosis:
    """As `diagnose`; `beside` are symptoms that no recording holds and that somebody saw meanwhile."""
    looks, unseen = _looks(whole)
    seen = []
    for number, look in enumerate(looks):
        if progress is not None:
            progress(number, len(looks))
        seen.append(_see(look, () if number else beside, live))
        if look.facts is not whole:
            look.facts.forget()  # on a large node each is a hundred megabytes
    incidents = _recurring([incident for each in seen for incident in each.incidents])
    incidents = [_with_cost(one) for one in _with_own_ids(ordered(_without_parts(incidents)))]
    incidents = [_with_our_own(one, whole.node.get("own_cgroup")) for one in incidents]
    jobs = ray_jobs_of(whole.recording, whole.start_us, whole.end_us)
    account = jobs.account([Reach.of(one) for one in incidents])
    incidents = [replace(one, jobs=fates) for one, fates in zip(incidents, account, strict=True)]
    incidents = tried.told(whole.recording, incidents)
    not_checked = [*_not_checked(whole, seen), *([unseen] if unseen else [])]
    kept = tuple(incidents[:MAX_INCIDENTS])
    remarks = _worst_of_each([symptom for each in seen for symptom in each.symptoms if symptom.is_remark])
    return Diagnosis(
        whole.recording.name,
        whole.start_us,
        whole.end_us,
        kept,
        tuple(not_checked),
        _is_blind(seen),
        tuple(_noted(remarks, kept)),
        remarks,
        jobs.outcomes,
    )


def ray_jobs_of(recording: Recording, start_us: int, end_us: int) -> RayJobs:
    """Of the window, and of some time around it: a job ends after what it died of."""
    around = (start_us - RAY_JOBS_KNOWN_US, end_us + RAY_FAILS_AFTER_US)
    return RayJobs(events(recording, *around, kinds=KINDS))


def _not_found(beside: Sequence[Symptom], found: list[Symptom]) -> list[Symptom]:
    known = {(symptom.kind, symptom.cpu, symptom.group) for symptom in found}
    return [symptom for symptom in beside if (symptom.kind, symptom.cpu, symptom.group) not in known]


# --- long windows ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Look:
    """A part of the window that is looked at whole; `goes_on_us` where the run ends that fills it to its end."""

    facts: Facts
    goes_on_us: int | None = None


class _Seen(NamedTuple):
    """What is left of a look when its facts are let go of."""

    symptoms: list[Symptom]
    incidents: list[Incident]
    has_cores: bool
    has_samples: bool


def _see(look: _Look, beside: Sequence[Symptom], live: bool) -> _Seen:
    found = symptoms.find(look.facts)
    found += _not_found(beside, found)
    incidents = list(_examined(look, found, live))
    return _Seen(found, incidents, look.facts.cores is not None, len(look.facts.samples) > 0)


def _looks(whole: Facts) -> tuple[list[_Look], str | None]:
    """What to look at, and what is to be said about the rest."""
    if whole.end_us - whole.start_us <= WINDOW_LONG_US:
        return [_Look(whole)], None
    seconds = moments.scan(whole.recording, whole.start_us, whole.end_us)
    known = moments.found_before(found_live(whole.recording), whole.start_us, whole.end_us)
    chosen = moments.choose(
        seconds, whole.events, whole.start_us, whole.end_us, (*known, *rises(whole), *slowings(whole))
    )
    looks = [_Look(Facts(whole.recording, one.from_us, one.to_us, whole), one.goes_on_us) for one in chosen.moments]
    seen_s = sum(look.facts.seconds for look in looks)
    said = f"samples: {seen_s / 60:.0f} of {whole.seconds / 60:,.0f} minutes were examined in detail"
    if chosen.left_out:
        said += f"; {chosen.left_out:,} of {chosen.suspicious:,} suspicious moments (the least suspicious) were not"
    return looks, said + "; a shorter window (--from and --to) is examined completely"


def _examined(look: _Look, found: list[Symptom], live: bool) -> Iterator[Incident]:
    presence, alike = Presence(look.facts.samples), Alike()
    for each in group([symptom for symptom in found if not symptom.is_remark], presence):
        incident = _incident(look.facts, each, live, alike)
        if each.is_moderate and not each.is_worth_a_word and not is_news(incident):
            continue
        if look.goes_on_us is not None and incident.to_us >= look.facts.end_us - INCIDENT_OPEN_US:
            incident = replace(incident, to_us=look.goes_on_us)
        yield incident


# --- one incident ------------------------------------------------------------------------------------------------


def _incident(facts: Facts, each: Group, live: bool, alike: Alike) -> Incident:
    case = Case(facts, each)
    explained = alike.explained(case)
    if explained is None:
        causes, ruled_out = ranking.rank(case, list(patterns.every()))
        explained = Explained(delayed.told(case, python_waits.told(case, causes)), ruled_out, case.not_seen)
        alike.examined(case, explained)
    causes = explained.causes
    state: State = "open" if live and each.to_us >= facts.end_us - INCIDENT_OPEN_US else "closed"
    return Incident(
        each.identity(facts.recording.name, facts.recording.boot_at(each.from_us) or ""),
        each.from_us,
        each.to_us,
        state,
        _severity(each, causes),
        each.symptoms,
        causes,
        explained.ruled_out,
        not_checked=() if explained.not_seen is None else (explained.not_seen,),
        cost=cost_of(case, causes[0] if causes else None),
    )


def _with_cost(incident: Incident) -> Incident:
    """Its first sentence, and the chain of its first cause, end with what it cost."""
    cost = incident.cost
    if cost is None or not incident.causes or not (cost.losses or cost.not_known):
        return incident
    first, said = incident.causes[0], f"; {cost.text}" if cost.losses else ""
    known = [Link("cost", cost.text, round(cost.lost_s, 1), "GPU-seconds", incident.from_us, "gpu_seconds")]
    unknown = [Link("not seen", one.not_known, None, None, incident.from_us, "samples") for one in cost.not_known]
    chain = (*first.chain, *(known if cost.losses else ()), *unknown)
    return replace(
        incident,
        causes=(replace(first, summary=first.summary + said, chain=chain), *incident.causes[1:]),
        not_checked=(*incident.not_checked, *(one.not_known for one in cost.not_known)),
    )


ITS_OWN = "this is zombiescope itself"


def _with_our_own(incident: Incident, own: object) -> Incident:
    """A cause in the container or unit of the recorder says so: nobody else's job is meant."""
    if not isinstance(own, str) or own in ("", "/"):
        return incident
    causes = tuple(
        replace(one, summary=f"{one.summary}; {ITS_OWN}")
        if any(actor is not None and _is_within(actor.cgroup, own) for actor in (one.hog, one.culprit)) else one
        for one in incident.causes
    )  # fmt: skip
    return replace(incident, causes=causes)


def _is_within(path: str | None, own: str) -> bool:
    return path is not None and (path == own or path.startswith(f"{own}/"))


def _cost_of_both(one: Incident, other: Incident) -> GpuCost | None:
    return one.cost if other.cost is None else other.cost if one.cost is None else one.cost.added(other.cost)


def _severity(each: Group, causes: tuple[Cause, ...]) -> Severity:
    """Critical: something said so, or a confirmed cause took a core for as long as a network driver waits."""
    if each.severity == "critical":
        return "critical"
    is_fallback = bool(causes) and causes[0].pattern == FALLBACK
    confirmed = bool(causes) and not is_fallback and causes[0].confidence > UNCONFIRMED_MOST
    if (confirmed or is_fallback) and causes[
        0
    ].is_ordinary:  # that a core is busy with it hurts nobody; who waits for it may be hurt
        return worst([symptom.severity for symptom in each.symptoms if symptom.detector.role == "victim"])
    if confirmed and any(_is_lasting(symptom) for symptom in each.symptoms):
        return "critical"
    is_seen_doing_harm = is_fallback and causes[0].is_harmful
    if ((confirmed or is_seen_doing_harm) and not each.is_moderate) or each.severity == "warning":
        return "warning"
    is_lost = any(map(_lost_a_core, each.symptoms)) and not (causes and YIELDS & set(causes[0].frames))
    return "warning" if is_lost else "info"


YIELDS = frozenset({"do_sched_yield", "__do_sys_sched_yield", "sys_sched_yield"})
"""A poller that yields gives its core to any task that wants it: no core is lost, as with the proxy threads of NCCL."""


def _lost_a_core(symptom: Symptom) -> bool:
    """For ten seconds one task had a core in the kernel: worth a warning, whether or not it is explained. Many tasks
    that have as much together are the work of a busy machine."""
    cores, is_new = symptom.facts.get("ratio"), symptom.facts.get("new")
    is_whole = isinstance(cores, int | float) and cores >= LOST_CORES
    is_one = symptom.kind == "kernel_hog" and not symptom.facts.get("many")
    return is_one and bool(is_new) and is_whole and symptom.seconds >= LOST_CORE_WARNING_S


def _is_lasting(symptom: Symptom) -> bool:
    after_s = symptom.detector.critical_after_s
    return after_s is not None and symptom.seconds >= after_s


def _recurring(found: list[Incident]) -> list[Incident]:
    """The same cause by the same hog and culprit again is the same incident."""
    first: dict[tuple[str, ...], int] = {}
    kept: list[Incident] = []
    # A symptom stands for what merely was there, whichever began first.
    for incident in sorted(found, key=lambda incident: (is_moderate(incident.symptoms), incident.from_us)):
        key = _sameness(incident)
        if key is None or key not in first:
            if key is not None:
                first[key] = len(kept)
            kept.append(incident)
            continue
        before = kept[first[key]]
        goes_on = incident.from_us <= before.to_us and before.from_us <= incident.to_us
        adds = goes_on and not is_moderate(incident.symptoms)
        kept[first[key]] = replace(
            before,
            severity=before.severity if _rank(before) >= _rank(incident) else incident.severity,
            state=incident.state if incident.to_us >= before.to_us else before.state,
            symptoms=(*before.symptoms, *incident.symptoms) if adds else before.symptoms,
            from_us=min(before.from_us, incident.from_us) if goes_on else before.from_us,
            to_us=max(before.to_us, incident.to_us) if goes_on else before.to_us,
            recurrences=before.recurrences if goes_on else (*before.recurrences, incident.from_us),
            cost=_cost_of_both(before, incident),
        )
    return kept


def _sameness(incident: Incident) -> tuple[str, ...] | None:
    if not incident.causes:
        return None
    cause = incident.causes[0]
    culprit = cause.culprit.name if cause.culprit else ""
    hog = cause.hog.unit or cause.hog.comm or ""
    apart = next((f"{one.group}: {one.facts.get('cause')}" for one in incident.symptoms if one.detector.is_apart), "")
    # Where nobody is named, it is the same only if it is about the same thing: two GPUs are two incidents.
    return cause.pattern, hog, culprit, apart or ("" if hog or culprit else _thing(incident.symptoms))


def _thing(symptoms: Sequence[Symptom]) -> str:
    return event_thing(symptoms) or next((one.thing for one in symptoms if one.thing), "")


def _rank(incident: Incident) -> int:
    return rank(incident.severity)


def _without_parts(found: list[Incident]) -> list[Incident]:
    """What nothing explains, by the same hog in the same seconds as what is explained, is a part of that."""
    whole = dict(enumerate(found))
    for number in range(len(found)):
        part = whole[number]
        mine = [other for other, one in whole.items() if other != number and _is_part(part, one)]
        if not mine:
            continue
        at = max(mine, key=lambda other: min(whole[other].to_us, part.to_us) - max(whole[other].from_us, part.from_us))
        into = whole[at]
        whole[at] = replace(
            into,
            severity=into.severity if _rank(into) >= _rank(part) else part.severity,
            symptoms=tuple(sorted((*into.symptoms, *part.symptoms), key=lambda symptom: symptom.from_us)),
            from_us=min(into.from_us, part.from_us),
            to_us=max(into.to_us, part.to_us),
            state=into.state if into.to_us >= part.to_us else part.state,
            cost=into.cost if into.cost is not None and into.cost.losses else part.cost,
        )
        del whole[number]
    return list(whole.values())


def _with_own_ids(found: list[Incident]) -> Iterator[Incident]:
    """Two that began in one place and second, and have two causes, are two."""
    taken: set[str] = set()
    for one in found:
        own = one if one.id not in taken else replace(one, id=another_id(one.id, _first_pattern(one)))
        taken.add(own.id)
        yield own


def _first_pattern(incident: Incident) -> str:
    return incident.causes[0].pattern if incident.causes else ""


def _is_part(part: Incident, of: Incident) -> bool:
    if is_moderate(part.symptoms) and not is_moderate(of.symptoms) and _is_same_work(part, of):
        return True
    if is_explained(part) or not is_explained(of) or not part.causes or is_moderate(of.symptoms):
        return False
    mine, theirs = part.causes[0].hog, of.causes[0].hog
    same = mine.comm is not None and (mine.comm, mine.unit, mine.cgroup) == (theirs.comm, theirs.unit, theirs.cgroup)
    return same and part.from_us <= of.to_us + JOIN_NEAR_US and of.from_us <= part.to_us + JOIN_NEAR_US


def _is_same_work(part: Incident, of: Incident) -> bool:
    """The kworkers behind a caller, or the other way round: one cause by one culprit, in the same seconds."""
    mine, theirs = (one.causes[0] if one.causes else None for one in (part, of))
    if mine is None or theirs is None or mine.culprit is None or theirs.culprit is None:
        return False
    same = (mine.pattern, mine.culprit.name) == (theirs.pattern, theirs.culprit.name)
    return same and part.from_us <= of.to_us and of.from_us <= part.to_us


def _is_blind(seen: list[_Seen]) -> bool:
    """Neither cores nor stacks were recorded where it was looked."""
    return not any(each.has_cores or each.has_samples for each in seen)


def _worst_of_each(remarks: list[Symptom]) -> tuple[Symptom, ...]:
    worst: dict[tuple[object, ...], Symptom] = {}
    for one in remarks:
        key = (one.kind, one.cpu, one.group, one.facts.get("counter"))
        if key not in worst or rank(one.severity) > rank(worst[key].severity):
            worst[key] = one
    return tuple(sorted(worst.values(), key=lambda one: -rank(one.severity)))


def _noted(remarks: tuple[Symptom, ...], incidents: tuple[Incident, ...]) -> Iterator[str]:
    """Of remarks the serious ones, a few of each kind. Zombies that are many and walked by nobody are always one."""
    walked = any(cause.pattern == "zombie-memcg" for incident in incidents for cause in incident.causes[:1])
    shown: Counter[str] = Counter()
    for one in remarks:
        shown[one.kind] += 1
        if one.detector is memory_cgroups.DETECTOR:
            if not walked and (one.facts["dying"] or 0) >= ZOMBIES_SHOWN:
                yield f"{one.text}; no process was seen walking them"
        elif one.severity != "info" and shown[one.kind] <= NOTED_OF_A_KIND:
            yield one.text


def _not_checked(facts: Facts, seen: list[_Seen]) -> Iterator[str]:
    for entry in facts.missing:
        yield f"{entry.get('source')}: {entry.get('why')}"
    if _is_blind(seen):
        yield "cores and stacks: neither was recorded in this window"
    elif not any(each.has_cores for each in seen):
        yield "cores: no per-core counters in this window, so what each core did is known from its samples alone"
    if not facts.counts_cgroups:
        yield "memory cgroups: not counted in this window"
    if facts.kernel is None:
        yield "kernel: version unknown, so the signatures of all kernels were tried"
    reported = {str(entry.get("source")) for entry in facts.missing}
    for gap in [gap for gap in facts.gaps if gap.source not in reported][:5]:
        yield f"{gap.source}: blind for {(gap.to_us - gap.from_us) / 1e6:.0f} s ({gap.why})"
