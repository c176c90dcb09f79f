"""Tasks wait for one core while others have room: pinned there by affinity, a cpuset or an unlucky scheduler."""

from __future__ import annotations

import numpy as np

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.crowd import Crowd, crowd_on, who_keeps_them
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.thresholds import CONTENTION_LITTLE_US_PER_S
from zombiescope.model.plans.step import advice, command


def examine(case: Case) -> Evidence:
    crowd = _crowd(case)
    who = None if crowd is None else case.blamed(who_keeps_them(case.facts.samples, crowd, case.seconds), makes=True)
    core = "CORE" if crowd is None else str(crowd.cpu)
    return Evidence(
        (*_waited(case), *_shared(case, crowd)),
        who,
        "tasks wait for one core while others have room: affinity or a cpuset keeps them there"
        if crowd is None or who is None
        else f"{crowd.tasks} tasks of {who.name} must share core {core} while others have room: affinity or a "
        "cpuset keeps them there",
        Fix(
            "let the tasks of that core run elsewhere",
            (
                command(
                    "ps -eLo psr,pid,ppid,comm --sort=psr"
                    if crowd is None
                    else f"ps -eLo psr,pid,ppid,comm | awk '$1 == {crowd.cpu}'",
                    "who runs on which core",
                ),
                command(shell("taskset", "-pc", who.pid), "where it may run; cpuset.cpus of its cgroup may say less")
                if who and who.pid
                else advice("where it may run: the affinity of its threads, and cpuset.cpus of its cgroup"),
                advice(
                    "PyTorch: workers inherit the mask of the process that starts them, and some BLAS set it; "
                    "OMP_PROC_BIND=false, KMP_AFFINITY=disabled, or os.sched_setaffinity in worker_init_fn"
                ),
            ),
        ),
    )


def _crowd(case: Case) -> Crowd | None:
    cpus = [symptom.cpu for symptom in case.of_kind("run_queue_delay") if symptom.cpu is not None]
    return crowd_on(case.facts.samples, cpus[0], case.from_us, case.to_us) if cpus else None


def _shared(case: Case, crowd: Crowd | None) -> list[Measurement]:
    if crowd is None:
        return []
    held = bool(case.of_kind("kernel_hog", "rt_hog", "core_saturated", "throttled", "gpu_starved"))
    text = f"{crowd.tasks} tasks had {crowd.share * 100:.0f}% of core {crowd.cpu}, and none of them ran on another core"
    return [measured(text, crowd.tasks, "tasks", "samples", None if held else True)]


def _waited(case: Case) -> list[Measurement]:
    cores, span = case.facts.cores, case.seconds_of_cores()
    if cores is None or span is None or np.isnan(cores.counts["wait_us"][:, span[0] : span[1]]).all():
        return [Measurement("waiting in run queues was not measured", None, "us", "cores", "nothing")]
    waited = np.nan_to_num(cores.counts["wait_us"][:, span[0] : span[1]])
    row = int(np.argmax(waited.sum(axis=1)))
    total, seconds = int(waited[row].sum()), span[1] - span[0]
    held = bool(case.of_kind("kernel_hog", "rt_hog", "core_saturated", "throttled", "gpu_starved"))
    says = (
        False
        if total / seconds < CONTENTION_LITTLE_US_PER_S
        else True
        if case.of_kind("run_queue_delay") and not held
        else None
    )
    text = f"tasks waited {total / 1e6:.2f} s in total for core {cores.cpus[row]} in {seconds} s"
    return [measured(text, total, "us", "cores", says)]


PATTERN = Pattern(
    id="scheduler-contention",
    title="Tasks wait for one core while others have room",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="Run queue delay on one core, while no kernel function is hot there and other cores are idle.",
    confirmed_by="Tasks waited for one core for a second or more in each second, no task held it in the kernel, and "
    "the node had room; or three or more tasks shared it and did not run on any other.",
    refuted_by="Tasks waited less than 0.2 s per second for every core: neither affinity nor the scheduler is the "
    "cause.",
    remedy="Widen the affinity or the cpuset of the tasks that wait.",
    stop_gap="widen the affinity of the tasks that wait (taskset -a -p), or move others off that core",
    examine=examine,
    hog="The tasks that share the core.",
    culprit="The process that started the tasks that share the core: they inherited its affinity.",
    suspected_first=True,
    known_from="/proc/schedstat of the kernel; a crowd on one core measured on 6.18",
)
