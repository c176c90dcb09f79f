"""Which Ray jobs died of an incident, which failed by themselves, and which survived it.

Known from the events that the agent puts on the axis (node/ray). A job died of an incident when Ray says that
something of it was lost on this node in that time: its raylet, a worker, an actor, a task; and the job failed within
two minutes of that. A loss lies after the first evidence of the incident's cause: what was lost before a fault began
was not lost to it. A job that failed without such a loss failed by itself, whatever else happened on the node. What Ray
did not report is not guessed.

A job dies of one incident: of those that could have killed it the one with the best explanation. The live diagnosis and
`diagnose` both ask this module, so a fleet adds up the same account.

Over several nodes: how many of the jobs that touched an affected node failed, against the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from typing import Any, Literal

from zombiescope.diagnosis.incident import Incident, JobFate
from zombiescope.diagnosis.pattern import FALLBACK
from zombiescope.diagnosis.thresholds import RAY_FAILS_AFTER_US, RAY_FAILS_BEFORE_US
from zombiescope.store.event import Event

LOSSES = ("ray_node_dead", "ray_worker_died", "ray_actor_died", "ray_task_lost")
ENDS = {
    "ray_job_failed": "failed", "ray_job_finished": "succeeded", "ray_job_stopped": "stopped",
    "rayjob_failed": "failed", "rayjob_finished": "succeeded", "rayjob_stopped": "stopped",
}  # fmt: skip
"""By Ray itself, and by KubeRay, which says it later, or alone."""
KINDS = (*LOSSES, *ENDS, "ray_job_started", "rayjob_started", "ray_jobs")
MOST_JOBS = 100

Outcome = Literal["failed", "succeeded", "stopped", "running"]


@dataclass(frozen=True, slots=True)
class Reach:
    """An incident, as far as jobs are concerned. `evidence_us`: when its cause was first seen; `rank`: how good its
    explanation is."""

    id: str
    from_us: int
    to_us: int
    evidence_us: int
    rank: tuple[bool, float] = (False, 0.0)

    @classmethod
    def of(cls, incident: Incident) -> Reach:
        others = [one.from_us for one in incident.symptoms if not _is_rays(one.facts.get("event"))]
        evidence_us = min(others, default=incident.from_us)
        first = incident.causes[0] if incident.causes else None
        named = bool(others) and first is not None and first.pattern != FALLBACK
        return cls(incident.id, incident.from_us, incident.to_us, evidence_us,
                   (named, 0.0 if first is None else first.confidence))  # fmt: skip

    @classmethod
    def of_document(cls, entry: Mapping[str, Any]) -> Reach:
        """The same of an incident as incidents.json has it."""
        from_us, to_us = (round(float(entry.get(key) or 0) * 1e6) for key in ("from", "to"))
        symptoms = [one for one in entry.get("symptoms") or () if not _is_rays(one.get("event"))]
        times = [round(float(one.get("at") or 0) * 1e6) for one in symptoms]
        causes: Sequence[Mapping[str, Any]] = entry.get("causes") or ()
        first: Mapping[str, Any] = causes[0] if causes else {}
        named = bool(times) and bool(first) and first.get("pattern") != FALLBACK
        rank = (named, float(first.get("confidence") or 0))
        return cls(str(entry.get("id")), from_us, to_us, min(times, default=from_us), rank)


def _is_rays(event: object) -> bool:
    return str(event or "").startswith(("ray_", "rayjob_"))


@dataclass(slots=True)
class _Job:
    name: str
    ended_us: int | None = None
    outcome: str = "running"
    first_us: int = 0
    why: str = ""
    ran_s: float | None = None
    losses: list[Event] = field(default_factory=list)
    pids: set[int] = field(default_factory=set)
    """Of its driver and its workers on this node."""
    ids: set[str] = field(default_factory=set)
    """The numbers that Ray gave it."""


class RayJobs:
    """What the events of one node say of its jobs."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._jobs: dict[str, _Job] = {}
        self._alias: dict[str, str] = {}
        self._own: set[str] = set()
        known = [event for event in events if event.kind in KINDS]
        for event in known:
            self._learn(event)
        for event in known:
            self._take(event)

    def _learn(self, event: Event) -> None:
        """Names of jobs and addresses of the node: a job is called by its number here and by its name there."""
        job, name = event.fields.get("job"), event.fields.get("submission_id")
        if isinstance(job, str) and isinstance(name, str):
            self._alias[job] = name
        if event.kind == "ray_jobs":
            self._own |= set(_words(event.fields.get("node_ip")))

    def _name(self, event: Event) -> str | None:
        given = event.fields.get("submission_id") or event.fields.get("job")
        return self._alias.get(str(given), str(given)) if given else None

    def _job(self, name: str, at_us: int) -> _Job:
        return self._jobs.setdefault(name, _Job(name, first_us=at_us))

    def _take(self, event: Event) -> None:
        if event.kind == "ray_jobs":
            for word in _words(event.fields.get("jobs")):
                self._job(self._alias.get(word, word), event.at_us)
            for key, value in event.fields.items():
                if key.startswith("workers"):
                    self._take_workers(str(value), event.at_us)
            return
        name = self._name(event)
        pid = event.fields.get("driver_pid")
        if name and isinstance(pid, int) and self._is_here(event, "driver_ip"):
            self._job(name, event.at_us).pids.add(pid)
        if event.kind in LOSSES and self._is_here(event):
            hit = [self._alias.get(word, word) for word in _words(event.fields.get("jobs"))]
            for each in [*([name] if name else []), *hit]:
                self._job(each, event.at_us).losses.append(event)
        elif event.kind in ENDS and name:
            job = self._job(name, event.at_us)
            if job.ended_us is None or event.at_us < job.ended_us:
                job.ended_us, job.outcome = event.at_us, ENDS[event.kind]
                job.why = str(event.fields.get("said") or "")
                job.ran_s = _ran_s(event, job.first_us)
            if event.fields.get("lost_on") and self._is_here(event, "lost_on"):
                job.losses.append(event)
        elif event.kind in ("ray_job_started", "rayjob_started") and name:
            self._job(name, event.at_us)

    def _take_workers(self, said: str, at_us: int) -> None:
        for word in _words(said):
            job, _, pid = word.partition("=")
            if pid.isdecimal() and pid.isascii() and len(pid) < 10:
                known = self._job(self._alias.get(job, job), at_us)
                known.pids.add(int(pid))
                known.ids.add(job)

    def _is_here(self, event: Event, key: str = "node_ip") -> bool:
        """A head's axis has the losses of other nodes too."""
        said = _words(event.fields.get(key))
        return not said or not self._own or bool(self._own.intersection(said))

    @property
    def outcomes(self) -> dict[str, str]:
        return {job.name: job.outcome for job in self._jobs.values()}

    def pids(self, name: str) -> frozenset[int]:
        """The processes of a job on this node, as far as they were reported."""
        job = self._jobs.get(self._alias.get(name, name))
        return frozenset() if job is None else frozenset(job.pids)

    def names(self, name: str) -> frozenset[str]:
        """A job's name and its numbers."""
        own = self._alias.get(name, name)
        return frozenset({name, own, *(job for job, given in self._alias.items() if given == own)})

    def end(self, name: str) -> tuple[str, str, int | None] | None:
        """How a job ended, what it said at its end, and when. None: it is not known."""
        job = self._jobs.get(self._alias.get(name, name))
        return None if job is None else (job.outcome, job.why, job.ended_us)

    def lost(self, name: str) -> str | None:
        """What of a job was lost on this node first."""
        job = self._jobs.get(self._alias.get(name, name))
        return None if job is None or not job.losses else min(job.losses, key=lambda loss: loss.at_us).text

    def own_name(self, name: str) -> str:
        return self._alias.get(name, name)

    def fates(self, incident: Incident) -> tuple[JobFate, ...]:
        """Of the jobs that were there, those that died of it first; as if there were no other incident."""
        return self.account([Reach.of(incident)])[0]

    def account(self, reaches: Sequence[Reach]) -> list[tuple[JobFate, ...]]:
        """The jobs of each incident. One that died is listed with one incident, and not with the others."""
        order = ("died", "failed by itself", "survived")
        found: list[list[JobFate]] = [[] for _ in reaches]
        for job in self._jobs.values():
            fates = [(number, fate) for number, reach in enumerate(reaches) if (fate := self._fate(job, reach))]
            deaths = [number for number, fate in fates if fate.fate == "died"]
            of = max(deaths, key=lambda number: (reaches[number].rank, reaches[number].evidence_us), default=None)
            for number, fate in fates:
                if of is None or number == of or fate.fate == "survived":
                    found[number].append(fate)
        return [
            tuple(sorted(fates, key=lambda fate: (order.index(fate.fate), fate.job))[:MOST_JOBS]) for fates in found
        ]

    def _fate(self, job: _Job, reach: Reach) -> JobFate | None:
        if job.first_us > reach.to_us or (
            job.ended_us is not None and job.ended_us < reach.evidence_us - RAY_FAILS_BEFORE_US
        ):
            return None
        failed_us = job.ended_us if job.outcome == "failed" else None
        if failed_us is None or failed_us > reach.to_us + RAY_FAILS_AFTER_US:
            return JobFate(job.name, "survived", "", job.ended_us, job.ran_s)
        losses = [
            loss for loss in job.losses if self._is_part(loss, reach) and loss.at_us <= failed_us + RAY_FAILS_BEFORE_US
        ]
        if losses:
            return JobFate(job.name, "died", losses[0].text, failed_us, job.ran_s)
        return JobFate(job.name, "failed by itself", job.why, failed_us, job.ran_s)

    @staticmethod
    def _is_part(loss: Event, reach: Reach) -> bool:
        if loss.at_us < reach.evidence_us - RAY_FAILS_BEFORE_US:
            return False
        if loss.kind in ENDS:  # the job's own report, which comes after the loss that it tells of
            return True
        return loss.at_us <= reach.to_us + RAY_FAILS_AFTER_US // 2


def _ran_s(end: Event, first_us: int) -> float | None:
    """As Ray or KubeRay says; else since it was first seen here, which may be later."""
    said = end.fields.get("ran_s")
    if isinstance(said, int | float) and not isinstance(said, bool) and said >= 0:
        return float(said)
    return (end.at_us - first_us) / 1e6 if first_us < end.at_us else None


def is_rays_own(incident: Incident) -> bool:
    """Whether it is nothing but what Ray itself reported: that a job failed does not make its node an affected one."""
    return all(str(symptom.facts.get("event", "")).startswith("ray_") for symptom in incident.symptoms)


@dataclass(frozen=True, slots=True)
class NodeJobs:
    """One node of a comparison."""

    affected: bool
    outcomes: dict[str, str]


def failure_rates(nodes: Sequence[NodeJobs]) -> dict[str, Any] | None:
    """Jobs that touched an affected node against the others; running ones are not counted. None: no jobs."""
    touched: dict[str, list[bool]] = {}
    failed: dict[str, bool] = {}
    for node in nodes:
        for job, outcome in node.outcomes.items():
            touched.setdefault(job, []).append(node.affected)
            if outcome != "running":
                failed[job] = failed.get(job, False) or outcome == "failed"
    groups = {True: [0, 0], False: [0, 0]}
    for job, has_failed in failed.items():
        group = groups[any(touched[job])]
        group[0] += 1
        group[1] += has_failed
    if not failed:
        return None
    said = {name: _rate(*groups[key], nodes=sum(node.affected == key for node in nodes))
            for name, key in (("affected", True), ("unaffected", False))}  # fmt: skip
    return {**said, "p_value": _fisher(*groups[True], *groups[False])}


def _rate(jobs: int, failed: int, *, nodes: int) -> dict[str, Any]:
    return {"nodes": nodes, "jobs": jobs, "failed": failed, "ratio": failed / jobs if jobs else None}


def _fisher(jobs: int, failed: int, other_jobs: int, other_failed: int) -> float | None:
    """How likely chance alone gives the affected at least so many failures."""
    if not jobs or not other_jobs:
        return None
    total, losses = jobs + other_jobs, failed + other_failed
    ways = sum(comb(losses, hit) * comb(total - losses, jobs - hit) for hit in range(failed, min(jobs, losses) + 1))
    return ways / comb(total, jobs)


def _words(value: object) -> list[str]:
    return [word for word in str(value or "").split(",") if word]
