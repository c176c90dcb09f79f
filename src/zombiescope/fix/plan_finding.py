"""The plan for a finding of `audit`: its commands, as steps; what ends the finding's own unit can be applied."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from dataclasses import replace

from zombiescope.audit.finding import Finding
from zombiescope.fix import unit_steps
from zombiescope.model.plans.plan import Plan, distinct
from zombiescope.model.plans.step import Step

_ENDS = ("disable", "mask", "stop")


def plan(finding: Finding, *, node: str | None = None, force: Collection[str] = (), keep: Collection[str] = ()) -> Plan:
    found = [step for number, line in enumerate(finding.fix, 1) for step in _steps(finding, line, number, keep)]
    steps = [step if step.protects is None or step.protects in force else _refused(step) for step in found]
    summary = f"end {finding.unit}" if finding.unit else "change the node as described"
    return Plan(f"finding:{finding.id}", summary if steps else "no fix is known for it", distinct(steps), None, node)


def _steps(finding: Finding, line: str, number: int, keep: Collection[str]) -> Iterator[Step]:
    name = f"{finding.rule}:{number}"
    if line.startswith("#"):
        yield Step(name, "advice", line.lstrip("# "))
    elif finding.unit is not None and _ends(line, finding.unit):
        if finding.unit in keep:
            yield unit_steps.limited(finding.unit, finding.rule)
        else:
            yield from unit_steps.steps(finding.unit, finding.rule)
    else:
        yield _as_proposed(finding, line, name)


def _as_proposed(finding: Finding, line: str, name: str) -> Step:
    """A line of `audit` that no action stands for: a person reads it and runs it."""
    does = f"as `audit` proposes for {finding.rule}"
    if line.split()[:1] == ["journalctl"] or line.split()[1:2] in (["list-sessions"], ["list-units"], ["status"]):
        return Step(name, "look", does, line, part="look")
    return Step(
        name, "change", does, line, touches=(finding.why,), risk="it persists across reboots without asking again",
        undo="remove what it wrote, or write what was there before", verify="zombiescope audit",
    )  # fmt: skip


def _ends(line: str, unit: str) -> bool:
    """Whether one of our own lines ends that unit: `systemctl disable --now ecs.service`."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return False
    return len(words) >= 3 and words[0] == "systemctl" and words[1] in _ENDS and words[-1] == unit


def _refused(step: Step) -> Step:
    return replace(step, action=None, state="skipped", why=f"it is protected; --force-unit {step.protects} would do it")
