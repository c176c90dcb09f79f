"""A Ray job or a pod, as far as a recording knows it: when it was there, which tasks were its own, on which cores.

Known by events that carry its id, in their fields or their text, and by tasks whose pod, container or command line
does. A pod is named by its name or its uid; events with the name may have the uid, by which tasks know it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.incident import Incident
from zombiescope.recording import columns
from zombiescope.recording.event import Event
from zombiescope.recording.reader import Recording
from zombiescope.views.events import events

WorkloadKind = Literal["Ray job", "pod"]
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

    def concerns(self, incident: Incident) -> bool:
        """Whether an incident happened in its time or on a core that it ran on."""
        in_time = incident.from_us <= self.to_us and self.from_us <= incident.to_us
        return in_time or any(symptom.cpu in self.cpus for symptom in incident.symptoms)


def find(recording: Recording, kind: WorkloadKind, name: str, start_us: int, end_us: int) -> Workload | None:
    """None: nothing in the window knows it."""
    own = [event for event in events(recording, start_us, end_us) if _names(event, name)]
    ids = {name, *(str(event.fields[key]) for event in own for key in _UIDS if event.fields.get(key))}
    tasks = _tasks(recording, kind, ids, start_us, end_us)
    times, cpus = _samples(recording, tasks, start_us, end_us)
    moments = [event.at_us for event in own] + times
    if not moments:
        return None
    return Workload(min(moments), max(moments), len(own), len(tasks), frozenset(cpus))


def only(found: Diagnosis, workload: Workload) -> tuple[Incident, ...]:
    return tuple(incident for incident in found.incidents if workload.concerns(incident))


def _names(event: Event, name: str) -> bool:
    """A name is a whole word: job-12 does not name job-1."""
    word = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.-]*\w)")
    return any(word.search(str(value)) for value in (event.text, *event.fields.values()))


def _tasks(recording: Recording, kind: WorkloadKind, ids: set[str], start_us: int, end_us: int) -> list[int]:
    rows = columns.records(recording.table("tasks", start_us, end_us, ("task", "pod", "container", "cmdline")))
    wanted = []
    for row in rows:
        pod, container, line = (str(row[name] or "") for name in ("pod", "container", "cmdline"))
        starts = any(len(one) >= _LEAST_ID and container.startswith(one) for one in ids)
        if _uid(pod) in {_uid(one) for one in ids} - {""} or starts or (kind == "Ray job" and ids & set(line.split())):
            wanted.append(int(row["task"]))
    return wanted


def _uid(text: str) -> str:
    """systemd writes the uid of a pod with _ in place of -."""
    return text.replace("_", "-").lower()


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
