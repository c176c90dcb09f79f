"""Memory ran out, of a cgroup or of the machine, and the kernel killed a process."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.leak import unit_of
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured
from zombiescope.diagnosis.plan import cgroup_file, is_plain, shell
from zombiescope.diagnosis.thresholds import OOM_AROUND_US, OOM_LOOP_KILLS
from zombiescope.model.plans.step import advice, command
from zombiescope.query.cgroups import CgroupsView
from zombiescope.store.event import Event

KILLS = ("oom_kill",)
SUMMARIES = ("memcg_oom", "oom_summary")
"""Printed just before a kill, with the cgroups, from Linux 5.0 on."""


def examine(case: Case) -> Evidence:
    reports = [
        event for event in case.facts.events if case.group.from_us <= event.at_us <= case.group.to_us + OOM_AROUND_US
    ]
    kills = [event for event in reports if event.kind in KILLS]
    limited, victim = _victim(case, reports, kills)
    # Of a flood only some lines are kept, and each of those says how many it stands for.
    count = sum(1 + int(event.fields.get("held") or 0) for event in kills)
    return Evidence(
        (_kills(case, count, kills), *_cgroup(limited)),
        case.blamed(victim),
        _summary(victim, limited, count),
        _fix(case.cgroups, victim, limited),
    )


def _victim(case: Case, reports: list[Event], kills: list[Event]) -> tuple[str | None, Actor | None]:
    """The cgroup whose limit was reached, None for the machine's memory; and who was killed most often."""
    names = Counter(str(event.fields["comm"]) for event in kills if event.fields.get("comm"))
    if not names:
        return None, None
    comm = names.most_common(1)[0][0]
    own = [event.fields for event in reports if event.kind in SUMMARIES and event.fields.get("comm") == comm]
    limited = next((str(one["oom_memcg"]) for one in own if one.get("oom_memcg")), None)
    place = next((str(one["task_memcg"]) for one in own if one.get("task_memcg")), None)
    pid = next((event.fields.get("pid") for event in reversed(kills) if event.fields.get("comm") == comm), None)
    number = pid if isinstance(pid, int) else None
    for task in case.facts.samples.known.tasks.values():
        if task.comm == comm and task.cgroup == place:  # it ran long enough to be asked whose it is
            return limited, replace(task.actor(), pid=number)
    return limited, Actor(comm=comm, pid=number, unit=unit_of(place) if place else None, cgroup=place)


def _kills(case: Case, count: int, kills: list[Event]) -> Measurement:
    """Where cores were lost too, a single kill is not the trouble: that may be its report, or the reclaim before it.
    Kills that come again and again are the trouble themselves, whatever their reports cost. A core that took no
    interrupt before the kill, as on emulated machines, has nothing to do with it."""
    at_us = kills[0].at_us if kills else None
    if not count and case.facts.lacks("kernel log"):
        return Measurement("whether the OOM killer ran is not known: no kernel log", None, "kills", "events", "nothing")
    text = f"the OOM killer killed a process {'once' if count == 1 else f'{count:,} times'}"
    lost = case.of_kind("core_saturated", "stall", "nic_starved")
    off = [one for one in lost if one.facts.get("interrupts_off")]
    usual = any(at_us is not None and one.to_us < at_us for one in off)
    more = count < OOM_LOOP_KILLS and [one for one in lost if not (usual and one in off)]
    return measured(text, count, "kills", "events", False if not count else None if more else True, at_us=at_us)


def _cgroup(limited: str | None) -> list[Measurement]:
    if limited is None:
        return []
    return [Measurement(f"the limit that was reached is that of {limited}", limited, None, "events", "nothing")]


def _summary(victim: Actor | None, limited: str | None, count: int) -> str:
    who = victim.name if victim else "a process"
    often = "" if count <= 1 else f" {count:,} times"
    whose = "the machine ran out of memory" if limited is None else f"{limited} is at its memory limit"
    return f"the kernel killed {who}{often}: {whose}"


def _fix(view: CgroupsView, victim: Actor | None, limited: str | None) -> Fix:
    if limited is None:
        return Fix(
            "find out which program has the memory, and limit it",
            (
                command("ps -eo pid,comm,rss --sort=-rss | head", "who has most"),
                advice("containers and services with limits are killed alone, before the machine is short"),
            ),
        )
    look = cgroup_file(view, limited, "memory.events", "memory/memory.oom_control", "how often")
    steps = [look] if look is not None else []
    unit = victim.unit if victim and not victim.container else None
    if unit and unit.endswith((".service", ".scope")) and is_plain(unit):
        steps.append(command(shell("systemctl", "show", "-p", "MemoryMax", "-p", "MemoryPeak", unit)))
    steps.append(advice("raise the limit if the work needs it; otherwise look for what grows (cache, workers, a leak)"))
    if victim and victim.pod:
        steps.append(advice("the limit is resources.limits.memory of the pod; its restart policy starts it again"))
    return Fix(f"raise the memory limit of {limited}, or use less in it", tuple(steps))


PATTERN = Pattern(
    id="oom-kill",
    title="The kernel OOM-killed a process",
    proof="kernel",
    seen_on=("6.18", "6.1 (emulated)"),
    looks_like="Processes die with SIGKILL and log nothing themselves; the kernel log has it. Started again, they grow "
    "and die again: a loop that shows as restarts, not as CPU.",
    confirmed_by="The kernel logged the kill, with the process and the cgroup at its limit.",
    refuted_by="The kernel logged no such line during the incident.",
    remedy="Raise the limit, or find out what grows; without a limit, find out which program has the memory.",
    stop_gap="run less at once in that cgroup, or raise its limit for now, if the node has the memory",
    examine=examine,
    symptoms=frozenset({"event"}),
    hog="No process need be busy.",
    culprit="The process that was killed, with the cgroup whose limit it reached.",
    known_from="measured on 6.18 and 6.1: CONSTRAINT_MEMCG names both cgroups",
)
