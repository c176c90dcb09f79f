"""Tasks that wait in the kernel and do not come back: for a disk, a file server, a FUSE daemon, a GPU driver, a lock.

They use no CPU and take no sample, so nothing else here sees them. Who waits for the same thing is one symptom: an
incident is about the thing, and its victims are many. What a wait has to be for that is in store/hangs.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import TASKS_WAIT_HALF_A_LOOK_US
from zombiescope.kernel.log_kinds import Subject
from zombiescope.kernel.mountinfo import FAMILIES
from zombiescope.query.waiting import WaitingTask
from zombiescope.store.hangs import REMOTE, STORAGE, thing

BLOCK_KINDS = frozenset({"disk", "journal", "writeback", "swap"})
MOST_NAMES = 4


def find(facts: Facts) -> Iterator[Symptom]:
    groups: dict[str, list[WaitingTask]] = {}
    for task in _traced(facts):
        if task.hangs:
            groups.setdefault(place(task.kind, task.resource), []).append(task)
    for where, tasks in sorted(groups.items()):
        yield _symptom(facts, where, tasks)


def _traced(facts: Facts) -> Iterator[WaitingTask]:
    """Who waits for a loop device waits for the mount that its file is on; the kernel's own thread for that device is
    looked up at other moments than its readers, and may not know it."""
    loops = {one.point: one for one in facts.served if one.kind == "loop"}
    for task in facts.waiting:
        loop = loops.get(task.resource or "") if task.kind in BLOCK_KINDS else None
        family = None if loop is None else FAMILIES.get((loop.device or "").partition(".")[0])
        yield task if loop is None or family is None else replace(task, kind=family, resource=loop.source)


def span(facts: Facts, tasks: list[WaitingTask]) -> tuple[int, int]:
    """From when on they waited, as far as it was recorded, to where they were last seen, or half the way to the next
    look: nobody knows when in between they went on."""
    since_us = max(min(task.since_us for task in tasks), facts.recording.start_us)
    return since_us, max(since_us, min(max(task.at_us for task in tasks) + TASKS_WAIT_HALF_A_LOOK_US, facts.end_us))


def place(kind: str | None, resource: str | None) -> str:
    """The same for whoever waits for one disk, whether for its data or its journal."""
    family = "disk" if kind in BLOCK_KINDS else kind or "the kernel"
    return f"{family} {resource}" if resource else family


def _symptom(facts: Facts, where: str, tasks: list[WaitingTask]) -> Symptom:
    longest = max(tasks, key=lambda task: task.seconds)
    since_us, to_us = span(facts, tasks)
    count = max(len({task.tid for task in tasks}), *(task.alike for task in tasks))
    names = [name for name, _ in Counter(task.comm for task in tasks).most_common(MOST_NAMES)]
    who = f"{names[0]} waits" if count == 1 else f"{count:,} tasks ({', '.join(names)}) wait"
    return Symptom(
        DETECTOR,
        since_us,
        to_us,
        f"{who} for {thing(longest.kind, longest.resource)} and have not moved for {longest.seconds:.0f} s"
        if count != 1
        else f"{who} for {thing(longest.kind, longest.resource)} and has not moved for {longest.seconds:.0f} s",
        "warning",
        group=where,
        facts=_facts(longest, count, names),
        subject=_subject(longest.kind),
    )


def _facts(task: WaitingTask, count: int, names: list[str]) -> dict[str, Any]:
    named = {"server": task.resource} if task.kind in REMOTE else {"device": task.resource}
    return {
        "waits_for": task.kind, "resource": task.resource, "count": count, "waiters": names, "wchan": task.wchan,
        "daemon": task.daemon, "moves": task.moves, "waited_s": round(task.seconds, 1),
        **(named if task.resource else {}),
    }  # fmt: skip


def _subject(kind: str | None) -> Subject:
    return "disk" if kind in STORAGE else "gpu" if kind == "gpu" else "waiting"


DETECTOR = Detector(
    kind="tasks_wait",
    title="tasks wait",
    reported_when="tasks waited in the kernel for 10 s without running at all, for something that made no progress (a "
    "GPU driver or a lock: 30 s; otherwise 120 s)",
    find=find,
    source="waiting",
    role="victim",
    about="waiting",
    begins="moment",
    weight=3,
    bounds_case=True,
    has_hog=False,
    critical_after_s=60.0,
)
