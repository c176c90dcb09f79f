"""Workers of one process were stopped by a signal (SIGSTOP) while it waits for them.

A job that somebody suspends in a terminal stops as a whole and is not one: its parent is the shell. So the parent has
to go on in the same job, to have used the CPU before, and to use none now; and the workers were busy until then. Where
the parent is on a GPU that fell idle, that is said of the GPU (gpu_idle.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis import idle_gpus
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.quiet_workers import Quiet, quiet, used, used_before
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import (
    STOPPED_LEAST_S,
    STOPPED_LEAST_WORKERS,
    STOPPED_PARENT_LEAST_CORES,
    STOPPED_PARENT_LEFT_RATIO,
    STOPPED_PAST_US,
    STOPPED_SETTLED_US,
)
from zombiescope.store.hangs import STOPPED


def find(facts: Facts) -> Iterator[Symptom]:
    stopped = [
        one for one in quiet(facts, STOPPED) if one.seconds >= STOPPED_LEAST_S and one.many >= STOPPED_LEAST_WORKERS
    ]
    idle = idle_gpus.find(facts) if stopped else []
    for one in stopped:
        if not any(one.parent in gpu.pids and one.overlaps(gpu.from_us, gpu.to_us) for gpu in idle):
            yield from _symptom(facts, one)


def _symptom(facts: Facts, one: Quiet) -> Iterator[Symptom]:
    before = used_before(facts, {one.parent}, one.from_us, STOPPED_PAST_US, tree=False)
    now = used(facts, {one.parent}, one.from_us + STOPPED_SETTLED_US, one.to_us, tree=False)
    if before is None or now is None or before < STOPPED_PARENT_LEAST_CORES or now > STOPPED_PARENT_LEFT_RATIO * before:
        return
    text = (
        f"{one.many} workers ({one.comm}) of {one.parent_comm} (pid {one.parent}) were stopped by a signal for "
        f"{one.seconds:.0f} s, and it waits for them"
    )
    about = {"count": one.many, "pids": list(one.pids), "parent": one.parent, "parent_comm": one.parent_comm,
             "comm": one.comm, "stopped_s": round(one.seconds, 1), "parent_before": round(before, 3)}  # fmt: skip
    from_us, to_us = max(one.from_us, facts.start_us), min(one.to_us, facts.end_us)
    yield Symptom(DETECTOR, from_us, to_us, text, group=f"workers of {one.parent_comm}", facts=about, subject="nothing")


DETECTOR = Detector(
    kind="workers_stopped",
    title="workers are stopped",
    reported_when="two or more workers of a process were stopped by a signal for 5 s or more, were busy until then, "
    "and their parent used the CPU before and waits now",
    find=find,
    source="waiting",
    role="victim",
    about="nothing",
    begins="moment",
    weight=3,
    bounds_case=True,
    has_hog=False,
)
