"""A GPU waits because a thread of its process waits: others have the core that it is kept on."""

from __future__ import annotations

import numpy as np

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.crowd import Crowd, who_keeps_them
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.thresholds import STARVED_TOOK_SHARE
from zombiescope.model.plans.step import Step, advice, command


def examine(case: Case) -> Evidence:
    worst = max(case.of_kind("gpu_starved"), key=lambda one: float(one.facts["gpu_seconds_lost"]), default=None)
    if worst is None:
        return Evidence(())
    taken = _taken(case, worst)
    who = case.known_hog
    return Evidence(
        (_waited(worst), *taken),
        case.blamed(_culprit(case)),
        _summary(case, worst, who),
        Fix("give the trainer a dedicated core, or let it leave this one", tuple(_steps(case, worst))),
    )


def _summary(case: Case, worst: Symptom, who: Actor | None) -> str:
    name = "others" if who is None else who.name if case.hog_pids < 2 else f"{case.hog_pids} processes of {who.name}"
    return f"core {worst.cpu} was taken by {name} for {worst.seconds:.0f} s"


def _waited(worst: Symptom) -> Measurement:
    before, ran = float(worst.facts["ran_before"]), float(worst.facts["ran"])
    text = f"threads of the GPU's process had {ran:.2f} of core {worst.cpu}, where they had {before:.2f} before"
    return measured(text, ran, "cores", "samples", True)


def _taken(case: Case, worst: Symptom) -> list[Measurement]:
    """How much of the core others had: little of it refutes that they took it."""
    grid = case.facts.samples
    there = grid.where(worst.from_us, worst.to_us, worst.cpu)
    many = int(np.count_nonzero(there))
    if not many:
        return []
    others = there & ~grid.below(set(worst.facts["pids"]))
    share = int(np.count_nonzero(others)) / many
    text = f"others had {share * 100:.0f}% of core {worst.cpu} meanwhile"
    return [measured(text, round(share, 4), "ratio", "samples", None if share >= STARVED_TOOK_SHARE else False)]


def _culprit(case: Case) -> Actor | None:
    if case.hog_task is None or case.hog_pids < 2:
        return case.answerable_hog
    crowd = Crowd(-1, case.hog_pids, 1.0, case.hog_samples)
    return who_keeps_them(case.facts.samples, crowd, case.seconds)


def _steps(case: Case, worst: Symptom) -> list[Step]:
    trainer = worst.facts["pids"][0]
    hog = case.hog.pid
    looks = [command(f"ps -eLo psr,pid,ppid,ni,comm | awk '$1 == {worst.cpu}'", "who runs on that core")]
    looks.append(command(shell("taskset", "-a", "-pc", trainer), "where the trainer's threads may run"))
    if hog is not None:
        looks.append(command(shell("taskset", "-pc", hog), "where the other may run"))
    return [
        *looks,
        advice("widen the affinity of the trainer, or keep the others off its cores: cpuset.cpus of their cgroup, "
               "AllowedCPUs= of their unit, static CPU manager of kubelet"),
        advice("a lower weight (CPUWeight=, cpu requests) of the others helps where the trainer cannot move"),
    ]  # fmt: skip


PATTERN = Pattern(
    id="trainer-starved",
    title="A trainer waits for a core, and its GPU waits for the trainer",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="Training makes fewer steps and uses its GPU less, with nothing wrong on the GPU. The average of all "
    "cores hardly changes: one core is full, and a thread that feeds the GPU is pinned to it.",
    confirmed_by="Threads of the GPU's process, or of its children, ran less on that core than before while tasks "
    "waited for it, and GPU use fell by a fifth or more compared with the minutes before.",
    refuted_by="Other tasks used less than 30% of that core.",
    remedy="Widen the affinity of the trainer, or keep others off its core.",
    stop_gap="move the other task off that core (taskset -a -p), or lower its weight",
    examine=examine,
    symptoms=frozenset({"gpu_starved"}),
    hog="The tasks that used most of the core, without those of the trainer.",
    culprit="The hog, or the process that started it.",
    known_from="measured on one H200 node: six busy loops on the core of the trainer took 84% of its steps",
)
