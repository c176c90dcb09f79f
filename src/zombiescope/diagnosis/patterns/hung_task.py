"""A task waits in the kernel for minutes and cannot be killed."""

from __future__ import annotations

from zombiescope.diagnosis.announced import announced, evidence
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix, FixStep, advice, command
from zombiescope.diagnosis.pattern import Evidence, Pattern
from zombiescope.diagnosis.symptom import Symptom

KIND = "hung_task"


def examine(case: Case) -> Evidence:
    line = announced(case, KIND)
    if line is None:
        return Evidence(())
    return evidence(line, Fix("find out what it waits for", tuple(_steps(line))), _waits_for(line))


def _steps(line: Symptom) -> list[FixStep]:
    pid = line.facts.get("pid")
    steps = [command(f"cat /proc/{pid}/stack", "while it hangs: where")] if isinstance(pid, int) else []
    return [
        command("dmesg -T | grep -A 30 'blocked for more than'", "where each of them waits"),
        *steps,
        advice("in nfs_ or io_schedule: the disk or the server; in mutex_lock or rwsem_: look for who holds the lock"),
    ]


def _waits_for(line: Symptom) -> Actor | None:
    """Who holds the lock, where the kernel says it."""
    owner, pid = line.facts.get("owner"), line.facts.get("owner_pid")
    return Actor(comm=str(owner), pid=pid if isinstance(pid, int) else None) if owner else None


PATTERN = Pattern(
    id="hung-task",
    title="A task hangs in the kernel",
    proof="literature",
    looks_like="A process is in state D for minutes, cannot be killed, and uses no CPU; the load average rises.",
    confirmed_by="The kernel's own line, which names the task and how long it has been blocked.",
    refuted_by="No such line during the incident.",
    remedy="Find out what it waits for: its stack in the kernel log says whether disk, network or a lock.",
    examine=examine,
    symptoms=frozenset({"event"}),
    hog="Nobody: a task that waits uses no CPU.",
    culprit="Who holds the lock, where the kernel names it; else not known.",
    known_from="kernel/hung_task.c",
)
