"""Tasks that may not write because what was written before does not get to the disk.

The kernel stops whoever writes more than the disk takes (balance_dirty_pages): they sleep, wake and sleep again. That
is how a large checkpoint is written on every healthy node, at the speed of its disk. It is trouble where that speed is
next to nothing, because then everybody who writes there stands still with them.
"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.symptoms.tasks_wait import MOST_NAMES, span
from zombiescope.diagnosis.thresholds import WRITEBACK_SLOW_BYTES_PER_S
from zombiescope.query.waiting import WaitingTask
from zombiescope.store.hangs import HANGS_S


def find(facts: Facts) -> Iterator[Symptom]:
    groups: dict[str | None, list[WaitingTask]] = {}
    for task in facts.waiting:
        if task.kind == "writeback" and task.seconds >= HANGS_S and task.bytes_per_s is not None:
            groups.setdefault(task.resource, []).append(task)
    for resource, tasks in sorted(groups.items(), key=lambda each: each[0] or ""):
        last = {task.tid: task for task in tasks}.values()
        rate = sum(task.bytes_per_s or 0 for task in last)
        if rate < WRITEBACK_SLOW_BYTES_PER_S:
            yield _symptom(facts, resource, tasks, rate)


def _symptom(facts: Facts, resource: str | None, tasks: list[WaitingTask], rate: float) -> Symptom:
    names = sorted({task.comm for task in tasks})[:MOST_NAMES]
    count = max(len({task.tid for task in tasks}), *(task.alike for task in tasks))
    where = target(resource)
    return Symptom(
        DETECTOR,
        *span(facts, tasks),
        f"{writers(count, names)} may write no more than {rate / 1e6:.2f} MB/s to {where}",
        "warning",
        group=f"disk {resource}" if resource else None,
        facts={
            "resource": resource,
            "count": count,
            "waiters": names,
            "bytes_per_s": round(rate),
            "daemon": tasks[-1].daemon,
            "waited_s": round(max(task.seconds for task in tasks), 1),
            **({"device": resource} if resource else {}),
        },
        subject="disk",
    )


def writers(count: int, names: list[str]) -> str:
    return names[0] if count == 1 else f"{count:,} tasks ({', '.join(names)})"


def target(resource: str | None) -> str:
    """Where they write to: a disk, or a mount point."""
    if resource is None:
        return "a disk"
    return f"the file system at {resource}" if resource.startswith("/") else f"the disk {resource}"


DETECTOR = Detector(
    kind="writeback_stalled",
    title="tasks may not write",
    reported_when="tasks were stopped from writing for 10 s because what was written before did not get to the disk, "
    "and could write less than 2 MB/s together",
    find=find,
    source="waiting",
    role="victim",
    about="disk",
    weight=2,
    bounds_case=True,
    has_hog=False,
    critical_after_s=60.0,
)
