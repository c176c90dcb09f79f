"""A Ray job or a pod, as far as a recording knows it: when it was there, which tasks were its own, on which cores.

Known by events that carry its id, in their fields or their text, and by tasks whose pod, container or command line
does. A pod is named by its name, namespace/name or uid; the table of containers and events with the name have the uid
and the ids of its containers, by which tasks know it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from zombiescope.diagnosis.diagnose import Diagnosis, ray_jobs_of
from zombiescope.diagnosis.incident import Incident
from zombiescope.diagnosis.ray_jobs import RayJobs
from zombiescope.query.containers import Container, containers
from zombiescope.query.events import events
from zombiescope.query.jobs import Job, jobs
from zombiescope.store import columns
from zombiescope.store.container_names import ContainerName, fits_pod, uid
from zombiescope.store.event import Event
from zombiescope.store.reader import Recording

WorkloadKind = Literal["Ray job", "pod", "job", "Slurm job"]
_UIDS = ("uid", "pod_uid", "container", "container_id")
_LEAST_ID = 8
"""Container ids are shortened by people; less than this is chance."""


@dataclass(frozen=True, slots=True)
class Workload:
    from_us: int
    to_us: int
    events: int
    tasks: int
    cpus: frozenset[int]
    pids: frozenset[int] = frozenset()
    """Of its tasks."""

    def concerns(self, incident: Incident) -> bool:
        """Whether an incident happened in its time or on a core that it ran on."""
        in_time = incident.from_us <= self.to_us and self.from_us <= incident.to_us
        return in_time or any(symptom.cpu in self.cpus for symptom in incident.symptoms)


def find(recording: Recording, kind: WorkloadKind, name: str, start_us: int, end_us: int) -> Workload | None:
    """None: nothing in the window knows it."""
    if kind in ("job", "Slurm job"):
        return _of_ranks(recording, name, start_us, end_us, slurm=kind == "Slurm job")
    of_ray = ray_jobs_of(recording, start_us, end_us) if kind == "Ray job" else None
    names = {name} if of_ray is None else of_ray.names(name)
    own = [event for event in events(recording, start_us, end_us) if any(_names(event, each) for each in names)]
    ids = {*names, *(str(event.fields[key]) for event in own for key in _UIDS if event.fields.get(key))}
    boxes = _containers(recording, name, start_us, end_us) if kind == "pod" else []
    ids |= {each for one in boxes for each in (one.id, one.pod_uid) if each}
    mine = frozenset() if of_ray is None else of_ray.pids(name)
    commands = {str(event.fields["command"]) for event in own if event.fields.get("command")}
    tasks, pids = _tasks(recording, kind, ids, mine, commands, start_us, end_us)
    times, cpus = _samples(recording, tasks, start_us, end_us)
    moments = [event.at_us for event in own] + times + _lives(boxes, start_us, end_us)
    if not moments:
        return None
    return Workload(min(moments), max(moments), len(own), len(tasks), frozenset(cpus), pids)


def _of_ranks(recording: Recording, name: str, start_us: int, end_us: int, *, slurm: bool) -> Workload | None:
    """A distributed job, by its ranks; of a Slurm job every step."""
    ranks = [one for job in jobs(recording, start_us, end_us) if _is_meant(job, name, slurm=slurm) for one in job.ranks]
    if not ranks:
        return None
    pids = {one.pid for one in ranks}
    rows = columns.records(recording.table("tasks", start_us, end_us, ("task", "pid")))
    tasks = [int(row["task"]) for row in rows if row["pid"] in pids]
    _, cpus = _samples(recording, tasks, start_us, end_us)
    from_us = max(start_us, min(one.from_us for one in ranks))
    to_us = min(end_us, max(end_us if one.to_us is None else one.to_us for one in ranks))
    return Workload(from_us, to_us, 0, len(ranks), frozenset(cpus))


def _is_meant(job: Job, name: str, *, slurm: bool) -> bool:
    if not slurm:
        return job.is_called(name)
    own = job.id.partition("/")[2]
    return job.kind == "slurm" and name in (own, own.partition(".")[0])


def only(found: Diagnosis, workload: Workload) -> tuple[Incident, ...]:
    return tuple(incident for incident in found.incidents if workload.concerns(incident))


def _containers(recording: Recording, name: str, start_us: int, end_us: int) -> list[Container]:
    """The containers of a pod."""
    found = containers(recording, start_us, end_us).values()
    return [one for one in found if fits_pod(one.pod_uid or "", _named(one), name)]


def _named(one: Container) -> ContainerName:
    return ContainerName(one.name, one.image, one.pod, one.namespace, one.owner)


def _lives(boxes: list[Container], start_us: int, end_us: int) -> list[int]:
    """When the pod's containers were there: a pod that used no CPU was there too."""
    ends = [one.exited_us if not one.alive and one.exited_us else end_us for one in boxes]
    starts = [one.first_us or one.started_us or start_us for one in boxes]
    return [min(max(at_us, start_us), end_us) for at_us in (*starts, *ends)]


def _names(event: Event, name: str) -> bool:
    """A name is a whole word: job-12 does not name job-1."""
    word = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.-]*\w)")
    return any(word.search(str(value)) for value in (event.text, *event.fields.values()))


def _tasks(
    recording: Recording,
    kind: WorkloadKind,
    ids: set[str],
    mine: frozenset[int],
    commands: set[str],
    start_us: int,
    end_us: int,
) -> tuple[list[int], frozenset[int]]:
    """Its tasks, and their processes; `mine`: processes that Ray named; `commands`: what Ray was asked to run."""
    rows = columns.records(recording.table("tasks", start_us, end_us, ("task", "pid", "pod", "container", "cmdline")))
    wanted, pids = [], set()
    for row in rows:
        pod, container, line = (str(row[name] or "") for name in ("pod", "container", "cmdline"))
        starts = any(len(one) >= _LEAST_ID and container.startswith(one) for one in ids)
        is_rays = kind == "Ray job" and (bool(ids & set(line.split())) or row["pid"] in mine or line in commands)
        if uid(pod) in {uid(one) for one in ids} - {""} or starts or is_rays:
            wanted.append(int(row["task"]))
            pids |= {int(row["pid"])} if row["pid"] else set()
    return wanted, frozenset(pids)


def _samples(recording: Recording, tasks: list[int], start_us: int, end_us: int) -> tuple[list[int], set[int]]:
    """First and last moment in which one of the tasks was sampled, and on which cores."""
    times: list[int] = []
    cpus: set[int] = set()
    if not tasks:
        return times, cpus
    for batch in recording.batches("samples", start_us, end_us, ("time", "cpu", "task")):
        mine = np.isin(columns.numbers(batch.column("task")), tasks)
        if mine.any():
            at = columns.numbers(batch.column("time"))[mine]
            times += [int(at.min()), int(at.max())]
            cpus |= set(np.unique(columns.numbers(batch.column("cpu"))[mine]).tolist())
    return times, cpus - {-1}


# --- what became of a Ray job ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JobAnswer:
    """What became of one Ray job, before all that else happened. `fate` None: how it ended is not known."""

    job: str
    fate: str | None
    text: str
    of_incident: str | None
    untouched_by: tuple[str, ...]
    """Incidents of its time on cores on which it did not run."""
    workload: Workload

    def document(self) -> dict[str, object]:
        return {
            "job": self.job, "fate": self.fate, "text": self.text, "incident": self.of_incident,
            "untouched_by": list(self.untouched_by), "tasks": self.workload.tasks, "cpus": sorted(self.workload.cpus),
            "pids": sorted(self.workload.pids),
        }  # fmt: skip


def job_answer(recording: Recording, name: str, found: Diagnosis, workload: Workload) -> JobAnswer:
    """`found`: everything that was diagnosed around the job."""
    of_ray = ray_jobs_of(recording, found.from_us, found.to_us)
    own = of_ray.own_name(name)
    fates = {each.id: fate for each in found.incidents for fate in each.jobs if fate.job == own}
    died = next((each for each in found.incidents if each.id in fates and fates[each.id].fate == "died"), None)
    untouched = [
        each for each in found.incidents
        if each is not died and each.from_us <= workload.to_us and workload.from_us <= each.to_us
        and (cores := _cores(each)) and workload.cpus and not cores & workload.cpus
    ]  # fmt: skip
    fate, text = _what_became(of_ray, own, None if died is None else fates[died.id].why, died)
    for each in untouched[:MOST_UNTOUCHED]:
        text += f"; {_named_cause(each)} on {_core_list(_cores(each))} did not touch it"
    return JobAnswer(
        own, fate, text, None if died is None else died.id, tuple(each.id for each in untouched), workload
    )  # fmt: skip


MOST_UNTOUCHED = 3


def _what_became(of_ray: RayJobs, own: str, why: str | None, died: Incident | None) -> tuple[str | None, str]:
    end = of_ray.end(own)
    if died is not None:
        cause = died.causes[0] if died.causes else None
        said = f": {cause.summary}" if cause is not None else ""
        return "died", f"{own} died of incident {died.id}{said} ({why})"
    if end is None:
        return None, f"how {own} ended is not known"
    outcome, last, _ = end
    lost = of_ray.lost(own)
    if outcome == "failed" and lost is not None:
        return "lost", f"{own} failed after it lost a part: {lost}; no incident on this node explains it"
    if outcome == "failed":
        return "failed by itself", f"{own} failed by itself" + (f": {last}" if last else "")
    return outcome, f"{own} is running" if outcome == "running" else f"{own} {_ENDED.get(outcome, outcome)}"


_ENDED = {"succeeded": "succeeded", "stopped": "was stopped"}


def _cores(incident: Incident) -> frozenset[int]:
    return frozenset(symptom.cpu for symptom in incident.symptoms if symptom.cpu is not None)


def _named_cause(incident: Incident) -> str:
    if not incident.causes:
        return f"incident {incident.id}"
    first = incident.causes[0]
    return f"{first.pattern} by {first.hog.name}" if first.hog.comm or first.hog.unit else first.pattern


def _core_list(cores: frozenset[int]) -> str:
    named = ", ".join(map(str, sorted(cores)[:8])) + (" and more" if len(cores) > 8 else "")
    return f"core{'s' * (len(cores) != 1)} {named}"
