"""A core that did not come back from the kernel, by the stack that the kernel printed: who is in it, and whether it
holds the core or waits for somebody who does."""

from __future__ import annotations

from zombiescope.diagnosis import printed_stacks
from zombiescope.diagnosis.announced import announced, evidence
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern
from zombiescope.diagnosis.printed_stacks import PrintedStack
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.thresholds import LOCKUP_AFTER_US, LOCKUP_BEFORE_US
from zombiescope.model.plans.step import Step, change, command, note


def examine(case: Case) -> Evidence:
    line = announced(case, "lockup")
    if line is None:
        return Evidence(())
    stacks = printed_stacks.printed(case.facts.events, line.from_us - LOCKUP_BEFORE_US, line.to_us + LOCKUP_AFTER_US)
    cpu = _stuck_cpu(case, line)
    found = printed_stacks.culprit(stacks, cpu)
    if found is None:  # that it happened is the symptom; nothing says why
        return Evidence(())
    said = evidence(line, _fix(found))
    links = (*said.measurements, *_links(stacks, found, cpu))
    return Evidence(links, None if found.waits else _actor(found), _summary(said.summary, found), said.fix)


def _stuck_cpu(case: Case, line: Symptom) -> int | None:
    """Of an RCU stall the core that is listed below its first line; who detected it is only the messenger."""
    listed = [one.cpu for one in case.of_kind("event") if one.facts.get("line") == "rcu.cpu" and one.cpu is not None]
    return line.cpu if line.cpu is not None else listed[0] if listed else None


def _actor(found: PrintedStack) -> Actor | None:
    return None if found.comm is None else Actor(comm=found.comm, pid=found.pid)


def _summary(said: str, found: PrintedStack) -> str:
    who = found.comm or "it"
    doing = f"waits in {found.frames[0]} for another task" if found.waits else f"was in {found.frames[0]}"
    return f"{said}; by the stack that the kernel printed, {who} {doing}"


def _links(stacks: list[PrintedStack], found: PrintedStack, cpu: int | None) -> list[Measurement]:
    own = next((one for one in stacks if one.cpu == cpu and cpu is not None), None)
    links = [_link(found, "confirms")]
    if own is not None and own is not found:
        links.insert(0, _link(own, "nothing", "waits: "))
    return links


def _link(one: PrintedStack, says: str, how: str = "") -> Measurement:
    where = f"core {one.cpu}" if one.cpu is not None else "a task"
    text = f"{where}, {one.comm or 'not named'}, {how}{one.path}"
    return Measurement(text, one.frames[0], None, "events", says, one.at_us, step="stack in the log")  # type: ignore[arg-type]


def _fix(found: PrintedStack) -> Fix:
    steps: list[Step] = [command("dmesg -T | grep -A 60 -iE 'lockup|stall'", "the whole report, with every stack")]
    if found.waits:
        steps.append(note("it waits for a lock or for another core: look for the stack that does not wait"))
    steps.append(
        change(
            "sysctl -w kernel.softlockup_all_cpu_backtrace=1",
            "have every core print its stack at the next soft lockup",
            touches="what the kernel logs at the next soft lockup: a stack of every core",
            undo="sysctl -w kernel.softlockup_all_cpu_backtrace=0",
            risk="a long report, which takes seconds on a serial console",
            verify="sysctl kernel.softlockup_all_cpu_backtrace",
            part="look",
        )
    )
    return Fix("read the stack: its innermost function is where the core was", tuple(steps))


PATTERN = Pattern(
    id="lockup",
    title="A core is stuck in the kernel",
    proof="literature",
    looks_like="The kernel reports a soft or hard lockup or an RCU stall, and prints stacks.",
    confirmed_by="The kernel's report with a stack. The stack of the stuck core names the task. If that task spins for "
    "a lock it is a victim, and another stack of the same report may show the holder.",
    refuted_by="The kernel printed no such report during the incident.",
    remedy="Read the stack; reduce the work per call, or report it to your kernel vendor.",
    no_stop_gap="a task that is stuck in the kernel ignores signals and does not release its core",
    examine=examine,
    symptoms=frozenset({"event"}),
    hog="The task that ran on the core.",
    culprit="The task of the printed stack, unless it waits.",
    known_from="kernel/watchdog.c, kernel/rcu/tree_stall.h",
    repair="RESTART_VM",
)
