"""A task waits in the kernel for minutes and cannot be killed."""

from __future__ import annotations

from dataclasses import replace

from zombiescope.diagnosis.announced import announced, evidence
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.pattern import Evidence, Pattern, measured
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.thresholds import HUNG_LOCK_WEIGHT
from zombiescope.diagnosis.waits import lasted_s, longest, tasks_of, what, where, who
from zombiescope.model.plans.step import Step, command, note


def examine(case: Case) -> Evidence:
    line = announced(case, "hung-task")
    if line is None:
        return _seen(case)
    return evidence(line, Fix("find out what it waits for", tuple(_steps(line))), _waits_for(line))


def _seen(case: Case) -> Evidence:
    """Found waiting for a lock, or for nothing that we know, by the recorder itself."""
    symptom = longest(case, "lock", None)
    if symptom is None:
        return Evidence(())
    tasks = tasks_of(case, symptom)
    waits = measured(symptom.text, symptom.facts.get("count"), "tasks", "waiting", True, at_us=symptom.from_us)
    waits = replace(waits, weight=HUNG_LOCK_WEIGHT)
    steps = (
        *(command(shell("cat", f"/proc/{one.pid}/stack"), f"where {one.comm} waits") for one in tasks[:1]),
        command("dmesg -T | grep -A 30 'blocked for more than'", "what the kernel reports of them"),
        note("look for who holds the lock: a task that waits for storage or a driver while it has it"),
    )
    summary = f"{who(symptom)} for {what(symptom)}, for {lasted_s(symptom):.0f} s"
    return Evidence((waits, *where(tasks)), None, summary, Fix("find out what it waits for", steps))


def _steps(line: Symptom) -> list[Step]:
    pid = line.facts.get("pid")
    steps = [command(f"cat /proc/{pid}/stack", "while it hangs: where")] if isinstance(pid, int) else []
    return [
        command("dmesg -T | grep -A 30 'blocked for more than'", "where each of them waits"),
        *steps,
        note("in nfs_ or io_schedule: the disk or the server; in mutex_lock or rwsem_: look for who holds the lock"),
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
    confirmed_by="The kernel logged the task and how long it has been blocked; or the recorder saw a task wait for a "
    "lock for 30 s without running once.",
    refuted_by="The kernel logged no such line during the incident, and no task was seen waiting.",
    remedy="Find out what it waits for: its stack in the kernel log shows whether it is disk, network or a lock.",
    no_stop_gap="a task in state D ignores signals; it continues only when what it waits for completes",
    examine=examine,
    symptoms=frozenset({"event", "tasks_wait"}),
    hog="No process: a waiting task uses no CPU.",
    culprit="The task that holds the lock, if the kernel names it; otherwise not known.",
    known_from="kernel/hung_task.c",
)
