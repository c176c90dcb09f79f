"""What the patterns about waiting tasks share: the symptom that an incident is about, and where its tasks wait."""

from __future__ import annotations

from collections import Counter

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor
from zombiescope.diagnosis.pattern import Measurement
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.query.waiting import WaitingTask
from zombiescope.store.hangs import thing

KINDS = ("tasks_wait", "disk_stalled")
SHOWN_FRAMES = 5


def longest(case: Case, *waits_for: str | None) -> Symptom | None:
    """Of the symptoms about things of these kinds, the one that lasted longest; where tasks wait, one of those."""
    mine = [one for one in case.of_kind(*KINDS) if one.facts.get("waits_for") in waits_for]
    return max(mine, key=lambda one: (one.kind == "tasks_wait", one.seconds), default=None)


def tasks_of(case: Case, symptom: Symptom) -> list[WaitingTask]:
    """The last that was seen of each task that hangs there."""
    kind, resource = symptom.facts.get("waits_for"), symptom.facts.get("resource")
    mine = [one for one in case.facts.waiting if one.hangs and (one.kind, one.resource) == (kind, resource)]
    return list({one.tid: one for one in mine}.values())


def what(symptom: Symptom) -> str:
    resource = symptom.facts.get("resource") or symptom.facts.get("device")
    return thing(symptom.facts.get("waits_for"), None if resource is None else str(resource))


def who(symptom: Symptom) -> str:
    """As the subject of a sentence; "nobody that was seen" where only the disk stands still."""
    count, names = int(symptom.facts.get("count") or 0), symptom.facts.get("waiters") or []
    if not count:
        return "no task was seen waiting"
    return f"{names[0]} waits" if count == 1 else f"{count:,} tasks wait ({', '.join(map(str, names))})"


def lasted_s(symptom: Symptom) -> float:
    """How long the longest of them waited, also before the recording began."""
    return float(symptom.facts.get("waited_s") or symptom.seconds)


def where(tasks: list[WaitingTask]) -> list[Measurement]:
    """Where in the kernel most of them wait."""
    paths = Counter(task.frames[-SHOWN_FRAMES:] or ((task.wchan,) if task.wchan else ()) for task in tasks)
    path, count = paths.most_common(1)[0] if paths else ((), 0)
    if not path:
        return []
    text = f"{count:,} of {len(tasks):,} wait in {' > '.join(path)}"
    return [Measurement(text, count, "tasks", "waiting", "nothing", tasks[0].at_us)]


def daemon(symptom: Symptom) -> Actor | None:
    """Who serves a FUSE file system, as far as that is known."""
    comm, colon, pid = str(symptom.facts.get("daemon") or "").rpartition(":")
    return Actor(comm=comm, pid=int(pid)) if colon and pid.isdigit() else None
