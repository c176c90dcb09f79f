"""Training has stopped: a GPU is idle, and its process waits for workers that do nothing."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.model.plans.step import advice, command, note


def examine(case: Case) -> Evidence:
    found = [one for one in case.of_kind("gpu_idle") if not one.facts["stopped"]]
    if not found:
        return Evidence(())
    worst = max(found, key=lambda one: one.seconds)
    summary = f"{worst.text}; what they wait for is not known"
    return Evidence(tuple(_measurements(worst)), None, summary, _fix(worst))


def _measurements(symptom: Symptom) -> Iterator[Measurement]:
    facts = symptom.facts
    yield measured(symptom.text, facts["idle_s"], "s", "gpu_seconds", True, at_us=symptom.from_us)
    if facts["wchan"]:
        many = len(facts["quiet"])
        yield measured(f"{many} workers sleep in {facts['wchan']}", many, "processes", "waiting", None)


def _fix(symptom: Symptom) -> Fix:
    pid = str(symptom.facts["pid"])
    places = (f"/proc/{number}/stack" for number in (pid, *symptom.facts["quiet"][:4]))
    return Fix(
        "find out what the workers wait for",
        (
            command(
                shell("zombiescope", "python", "--pid", pid, "--last", "2m"), "where its threads are, line by line"
            ),
            command(shell("cat", *places), "where in the kernel it and its workers sleep"),
            advice(
                "a lock that a forked worker inherited (threads before fork), a server that does not answer, or a full "
                "pipe between workers; DataLoader(timeout=...) turns such a wait into an error with a stack"
            ),
            note("a job that waits like this does not end by itself"),
        ),
    )


PATTERN = Pattern(
    id="gpu-idle",
    title="Training has stopped, with no process busy or stopped by a signal",
    proof="literature",
    looks_like="A GPU that was steadily used does nothing. Its process waits for the next batch, its workers sleep, "
    "and no resource of the node is exhausted.",
    confirmed_by="The GPU did nothing for 10 s, the main thread waited in the same function of the job's code as "
    "before, and the whole process tree used no CPU.",
    refuted_by="Nothing: the idle GPU is measured directly. Workers stopped by a signal, tasks that hang in the kernel "
    "and a core taken by others are separate patterns.",
    remedy="Find out what the workers wait for: a deadlock after fork, or a server that does not answer.",
    stop_gap="restart the job from its last checkpoint; a deadlock does not resolve itself",
    examine=examine,
    symptoms=frozenset({"gpu_idle"}),
    hog="No process: a waiting task uses no CPU.",
    culprit="Not known.",
    known_from="PyTorch's DataLoader; deadlocks after fork",
)
