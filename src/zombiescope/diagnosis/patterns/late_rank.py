"""One rank of a distributed job holds all others up, or is the one that did not come to a collective."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.model.plans.step import advice, command, note

_ADVICE = {
    "data": "its input is slower than that of the others: more workers, a nearer data set, less work per sample",
    "stopped": "find out who sent the signal; kill -CONT resumes the process",
    "storage": "look at the disk, file server or object store that it waits for",
    "core": "give the rank dedicated cores (cpuset, static CPU manager, --cpu-bind), or move the other task off them",
    "quota": "raise the CPU limit of its pod or unit, or remove it",
    "gc": "gc.freeze() after start-up, gc.disable() with a gc.collect() in step with all ranks, or fewer objects",
    "memory": "raise the memory limit of its pod or unit, or use less memory there",
    "host": "it does more on the CPU than the other ranks in each step: compare with `zombiescope python --pid`",
    "elsewhere": "diagnose the job on its other nodes: zombiescope fleet job ROOT --job ID",
    "network": "compare the calls of all ranks (flight recorder of PyTorch), and look at the network between them",
}


def examine(case: Case) -> Evidence:
    found = case.of_kind("rank_late")
    if not found:
        return Evidence(())
    worst = max(found, key=lambda one: (float(one.facts["late_s"]), one.seconds))
    pid = worst.facts["pid"]
    culprit = None if pid is None else Actor(comm=worst.facts["comm"], pid=pid)
    return Evidence(tuple(_measurements(worst)), culprit, worst.text, _fix(worst))


def _measurements(symptom: Symptom) -> Iterator[Measurement]:
    facts = symptom.facts
    if facts["rank"] is None:
        many = facts["others"]
        yield measured(symptom.text, many, "ranks", "python", True, at_us=symptom.from_us)
        return
    waited = f"{facts['others']} other ranks waited in a collective for rank {facts['rank']}"
    yield measured(waited, facts["late_s"], "s", "python", True, at_us=symptom.from_us)
    spent = ", ".join(
        f"{state} {seconds:g} s" for state, seconds in sorted(facts["states"].items(), key=lambda each: -each[1])
    )
    yield measured(f"in that time it spent {spent}: {facts['why']}", facts["late_s"], "s", "python", None)


def _fix(symptom: Symptom) -> Fix:
    facts = symptom.facts
    steps = []
    if facts["pid"] is not None:
        look = shell("zombiescope", "python", "--pid", str(facts["pid"]), "--last", "2m")
        steps.append(command(look, "what its threads do, line by line"))
    if facts["cause"] in _ADVICE:
        steps.append(advice(_ADVICE[facts["cause"]]))
    return Fix(
        "remove what holds this rank up",
        (*steps, note("the step times of all ranks are equal: only this rank can be changed, the others wait for it")),
    )


PATTERN = Pattern(
    id="late-rank",
    title="A rank holds the others up",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="Distributed training makes fewer steps, or none. All ranks take equally long for a step, most of them "
    "idle, and their own timers do not show which one the others wait for.",
    confirmed_by="One rank was outside the collective while all other ranks of the job on this node waited in it, "
    "three times as often as any other rank.",
    refuted_by="Nothing: the ranks are observed directly. Ranks that wait for each other in turn, as with batches of "
    "uneven size, and a rank that starts, saves a checkpoint or evaluates do not count.",
    remedy="Depends on what held the rank up, which the report names: its input, its core, its quota or memory limit, "
    "the garbage collector, or storage.",
    stop_gap="for a hang: stop the job and restart it from its last checkpoint without that node",
    examine=examine,
    symptoms=frozenset({"rank_late"}),
    hog="No process: a late rank need not use any CPU.",
    culprit="The late rank.",
    known_from="PyTorch with gloo on one machine, four ranks",
)
