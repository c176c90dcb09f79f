"""A GPU that was steadily used does nothing, and the process that used it is there and waits: training has stopped.

What has to be known for that is in idle_gpus.py; where less is known it is a note (gpu_waits.py). What has a symptom of
its own is left to it: tasks that hang in the kernel (tasks_wait.py), a core that others took (gpu_starved.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis import idle_gpus
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.idle_gpus import IdleGpu
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.tenant_names import TenantNames
from zombiescope.diagnosis.thresholds import GPU_STUCK_LEAST_S


def find(facts: Facts) -> Iterator[Symptom]:
    for one in idle_gpus.find(facts):
        if one.is_stopped or (one.seconds >= GPU_STUCK_LEAST_S and one.is_stuck and not hangs(one)):
            yield symptom(DETECTOR, one)


def hangs(one: IdleGpu) -> bool:
    """Somebody of the job waits in the kernel, which is reported as that."""
    return any(task.hangs and task.since_us < one.to_us and task.at_us > one.from_us for task in one.facts.waiting)


def symptom(detector: Detector, one: IdleGpu) -> Symptom:
    facts = one.facts
    whose = TenantNames(facts).of(list(one.tenants))
    pid = one.leading.pid
    waits = "is there" if one.place is None else one.place.text
    text = f"GPU {one.gpu} idle for {one.seconds:.0f} s (before: {one.usual:.0f}%): {whose} (pid {pid}) {waits}"
    said = workers_text(one)
    quiet = [each for each in (*one.stopped, *one.asleep) if each.parent in one.pids]
    about = {
        "gpu_number": one.gpu, "idle_s": round(one.seconds, 1), "usual": round(one.usual, 1), "pid": pid,
        "whose": whose, "place": None if one.place is None else one.place.text, "workers": said,
        "stopped": sorted({each for found in one.stopped for each in found.pids}),
        "comm": next((found.comm for found in one.stopped), None),
        "quiet": sorted({each for found in quiet for each in found.pids}),
        "wchan": next((found.wchan for found in one.asleep if found.wchan), None),
    }  # fmt: skip
    pci = next((row["pci"] for row in reversed(facts.gpu_rows) if row["gpu"] == one.gpu and row["pci"]), None)
    if pci is not None:
        about["gpu"] = pci
    span, text = (max(one.from_us, facts.start_us), one.to_us), f"{text}; {said}" if said else text
    return Symptom(detector, *span, text, group=f"GPU {one.gpu}", facts=about, subject="gpu")


def workers_text(one: IdleGpu) -> str:
    """What is known of those who feed it."""
    if any(not one.pids.isdisjoint(found.pids) for found in one.stopped):
        return "it is itself stopped by a signal (SIGSTOP)"
    for found in one.stopped:
        return f"its {_many(found.many)} stopped by a signal (SIGSTOP)"
    if one.suspended:
        return "it is suspended in a terminal"
    for found in one.asleep:
        where = "" if found.wchan is None else f" in {found.wchan}"
        return f"its {found.many} workers sleep{where}" if found.many > 1 else f"its worker sleeps{where}"
    if one.workers_before:
        many = one.workers_before
        return f"its {many} workers use no CPU" if many > 1 else "its worker uses no CPU"
    return ""


def _many(number: int) -> str:
    return f"{number} workers are" if number > 1 else "worker is"


DETECTOR = Detector(
    kind="gpu_idle",
    title="a GPU is idle",
    reported_when="a GPU that was steadily used for 20 s or more did nothing for 5 s while its process or its workers "
    "were stopped by a signal, or for 10 s while the process waited in a call in which it was seen before and neither "
    "it nor its workers used any CPU",
    find=find,
    source="gpu_seconds",
    role="victim",
    about="gpu",
    begins="moment",
    weight=5,
    bounds_case=True,
    has_hog=False,
)
