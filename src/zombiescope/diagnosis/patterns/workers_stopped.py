"""Processes that others wait for were stopped by a signal."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.model.plans.step import change, command, note

MOST_PIDS = 64


def examine(case: Case) -> Evidence:
    found = [one for one in case.of_kind("workers_stopped", "gpu_idle") if _stopped(one)]
    if not found:
        return Evidence(())
    worst = max(found, key=lambda one: (one.kind == "gpu_idle", one.seconds))
    pids = _stopped(worst)
    seen = measured(f"{len(pids)} processes were in state T (stopped)", len(pids), "processes", "waiting", True,
                    at_us=worst.from_us)  # fmt: skip
    return Evidence((seen, *_waits(worst)), Actor(comm=worst.facts.get("comm"), pid=pids[0]), worst.text, _fix(pids))


def _waits(symptom: Symptom) -> Iterator[Measurement]:
    """What the parent did; of a GPU the symptom says it."""
    if symptom.kind == "workers_stopped":
        before = symptom.facts["parent_before"]
        text = f"{symptom.facts['parent_comm']} used {before:.2f} of a core before, and none while it waited"
        yield measured(text, before, "cores", "samples", True, at_us=symptom.from_us)


def _stopped(symptom: Symptom) -> list[int]:
    return list(symptom.facts["pids"] if symptom.kind == "workers_stopped" else symptom.facts["stopped"])


def _fix(pids: list[int]) -> Fix:
    shown = [str(pid) for pid in pids[:MOST_PIDS]]
    look = shell("ps", "-o", "pid,ppid,stat,etime,args", "-p", ",".join(shown))
    return Fix(
        "find out who stopped them, and resume them",
        (
            command(look, "whether they are the same and still stopped (T)"),
            change(
                shell("kill", "-CONT", *shown),
                "they continue where they were",
                touches=f"{len(shown)} processes run again",
                risk="they may have been stopped for a reason: a debugger, a CPU limit, a suspended job",
                undo=shell("kill", "-STOP", *shown),
                verify=look,
                part="stop-gap",
            ),
            note("who sent the signal is not recorded: a debugger, cpulimit, a batch system that suspends jobs, or a "
                 "person"),
        ),
    )  # fmt: skip


PATTERN = Pattern(
    id="workers-stopped",
    title="Workers are stopped by a signal",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="Training makes no step and the GPU is idle, although no resource is exhausted and nothing waits for a "
    "disk or a server. In ps the workers are in state T.",
    confirmed_by="Busy processes changed to state T and stayed there, while the process that started them, which used "
    "the CPU before, used none.",
    refuted_by="Nothing: the states are observed directly. A job suspended in a terminal stops as a whole, with only "
    "the shell above it, and does not count.",
    remedy="Find out what sends the signal, and change that.",
    stop_gap="kill -CONT resumes them at once; nothing is lost",
    examine=examine,
    symptoms=frozenset({"workers_stopped", "gpu_idle"}),
    hog="No process: a stopped process uses no CPU.",
    culprit="The stopped processes; the sender of the signal is not recorded.",
    known_from="eight DataLoader workers of a job on an H200, stopped for 12 s with SIGSTOP",
)
