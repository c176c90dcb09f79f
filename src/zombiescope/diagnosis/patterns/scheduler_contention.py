"""Tasks wait for one core while others have room: pinned there by affinity, a cpuset or an unlucky scheduler."""

from __future__ import annotations

import numpy as np

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Finding, Measurement, Pattern, measured

LITTLE_US_PER_S = 200_000
"""Waiting, added up over the tasks of a core; a second and more each second is a symptom of its own."""


def examine(case: Case) -> Finding:
    return Finding(
        tuple(_waited(case)),
        None,
        "tasks wait for one core while others have room: affinity or a cpuset keeps them there",
        Fix(
            "let the tasks of that core run elsewhere",
            (
                "ps -eLo psr,pid,comm --sort=psr | awk '$1 == CORE'",
                "taskset -pc PID   # and: cat /sys/fs/cgroup/<cgroup>/cpuset.cpus.effective",
            ),
        ),
    )


def _waited(case: Case) -> list[Measurement]:
    cores, span = case.facts.cores, case.seconds_of_cores()
    if cores is None or span is None or np.isnan(cores.counts["wait_us"][:, span[0] : span[1]]).all():
        return [Measurement("waiting in run queues was not measured", None, "us", "cores", "nothing")]
    waited = np.nan_to_num(cores.counts["wait_us"][:, span[0] : span[1]])
    row = int(np.argmax(waited.sum(axis=1)))
    total, seconds = int(waited[row].sum()), span[1] - span[0]
    held = bool(case.of_kind("kernel_hog", "rt_hog", "core_saturated", "throttled"))
    says = (
        False if total / seconds < LITTLE_US_PER_S else True if case.of_kind("run_queue_delay") and not held else None
    )
    text = f"tasks waited {total / 1e6:.2f} s for core {cores.cpus[row]} in {seconds} s, added up"
    return [measured(text, total, "us", "cores", says)]


PATTERN = Pattern(
    id="scheduler-contention",
    title="Tasks wait for one core while others have room",
    proof="literature",
    looks_like="Run queue delay on one core, nothing of the kernel is hot there, and other cores are idle.",
    confirmed_by="Tasks waited a second or more in each second for one core, nobody held it in the kernel, and the "
    "node "
    "had room.",
    refuted_by="Waiting below 0.2 s a second on every core: neither affinity nor the scheduler is in the way.",
    remedy="Widen the affinity or the cpuset of what waits.",
    examine=examine,
    hog="The tasks that share the core.",
    culprit="Who set the affinity; that is not recorded.",
    suspected_first=True,
    known_from="/proc/schedstat of the kernel",
)
