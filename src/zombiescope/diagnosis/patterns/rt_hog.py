"""A real-time task does not yield its core: nothing else runs there, softirqs in ksoftirqd included."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zombiescope.diagnosis.case import Case, is_kernel_thread
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_used, measured
from zombiescope.diagnosis.plan import may_change, shell
from zombiescope.diagnosis.sample_index import SampledTask
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.symptoms.rt_hog import REAL_TIME
from zombiescope.model.plans.step import Step, change, command, note
from zombiescope.store.thresholds import REAL_TIME_RATIO

_CHRT = {1: "-f", 2: "-r"}
"""SCHED_FIFO and SCHED_RR as chrt calls them."""


def examine(case: Case) -> Evidence:
    hogs = case.of_kind("rt_hog")
    if not hogs:
        return Evidence((_none(case),))
    worst = max(hogs, key=lambda symptom: float(symptom.facts["ratio"]))
    policy = REAL_TIME.get(int(worst.facts["policy"] or 0), "a real-time policy")
    ratio = float(worst.facts["ratio"])
    found = [
        cpu_used(f"{worst.facts['comm']} runs with {policy} {worst.facts['rt_priority']} and used {{}}", ratio, True)
    ]
    throttling = [event for event in case.facts.events if event.kind == "rt_throttling"]
    if throttling:
        found.append(
            measured(
                "the kernel throttled real-time tasks",
                len(throttling),
                "lines",
                "events",
                None,
                at_us=throttling[0].at_us,
            )
        )
    actor = _actor(case, worst.facts["pid"]) or case.hog
    return Evidence(
        tuple(found),
        case.blamed(actor),
        f"{actor.name} runs at real-time priority and starves everything else on its core",
        Fix(
            f"run {actor.name} without real-time priority, or let it sleep",
            tuple(_steps(actor, worst)),
        ),
    )


def _steps(actor: Actor, worst: Symptom) -> Iterator[Step]:
    """The priority is taken from a process that is not the system's own, and only after a look: pids are used again."""
    pid, priority, option = worst.facts["pid"], worst.facts["rt_priority"], _CHRT.get(int(worst.facts["policy"] or 0))
    if isinstance(pid, int) and isinstance(priority, int) and option is not None and may_change(actor):
        yield command(shell("ps", "-o", "pid,cls,rtprio,lstart,args", "-p", pid), "is it still the same program?")
        yield change(
            shell("chrt", "-o", "-p", 0, pid),
            f"take its real-time priority from {actor.name}, until it starts again",
            touches=f"{actor.name} (pid {pid}) competes with everybody else for its core",
            risk="it may miss deadlines",
            undo=shell("chrt", option, "-p", priority, pid),
            verify=shell("chrt", "-p", pid),
            part="stop-gap",
        )
    else:
        yield note(f"no command is given for {actor.name}: it may be needed as it is, or how it ran is not known")
    yield command("sysctl kernel.sched_rt_runtime_us", "950000: real-time tasks get 95% of a core at most")


def _actor(case: Case, pid: object) -> Actor | None:
    grid = case.facts.samples
    mine, _ = grid.groups(lambda one: "it" if one.pid == pid else None)
    own = case.in_span & (mine >= 0)
    hottest = grid.hottest_task(own)
    return None if hottest is None else hottest[0].actor(round(np.count_nonzero(own) / grid.hz / case.seconds, 3))


def _none(case: Case) -> Measurement:
    """The most that any real-time task used; kernel threads (migration, watchdog) are not counted."""
    grid = case.facts.samples
    policies, _ = grid.tasks_by(_policy)
    if not (policies[grid.task[case.in_span]] >= 0).any():
        return Measurement("scheduling policies were not recorded", None, "cores", "samples", "nothing")
    best = grid.hottest_group(case.in_span, _real_time_thread)
    used = 0.0 if best is None else best[1] / grid.hz / case.seconds
    return cpu_used("no real-time task used more than {}", used, False if used < REAL_TIME_RATIO / 2 else None)


def _policy(task: SampledTask) -> str | None:
    return None if task.policy is None else str(task.policy)


def _real_time_thread(task: SampledTask) -> str | None:
    return f"{task.tid}" if task.policy in REAL_TIME and not is_kernel_thread(task) else None


PATTERN = Pattern(
    id="rt-hog",
    title="A real-time task keeps a core to itself",
    proof="kernel",
    seen_on=("6.18", "6.1 (emulated)"),
    looks_like="A task with SCHED_FIFO or SCHED_RR runs without sleeping. It may never enter the kernel; the tasks "
    "that share its core, and ksoftirqd up to kernel 6.4, wait.",
    confirmed_by="A task with a real-time policy that used 0.85 of a CPU or more (throttling leaves 5% to the others).",
    refuted_by="No real-time task used 0.4 of a CPU.",
    remedy="Take its real-time priority away, or let it sleep; keep kernel.sched_rt_runtime_us below its period.",
    stop_gap="take its real-time priority away (chrt), if nothing depends on its deadlines",
    examine=examine,
    hog="The real-time task.",
    known_from="sched(7); measured on 6.18, and on 6.1 with starved network",
)
