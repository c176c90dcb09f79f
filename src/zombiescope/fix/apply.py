"""Doing the steps of a plan, one after the other, until one fails.

Before a step the log says what is about to be done and how it was; after it, how it went. What is done already is not
done again, whoever did it; what an earlier run began and did not end is finished, with what that run noted as the way
back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from zombiescope.fix.log import ActionLog
from zombiescope.fix.node_steps import is_reboot
from zombiescope.fix.step import Action, ActionFailedError, Step
from zombiescope.model.plans import history
from zombiescope.model.plans.history import StepHistory
from zombiescope.model.plans.plan import Plan

Consent = Callable[[Step], bool]
Told = Callable[[Step], object]

ROUNDS = 3
"""A plan is made again so often at most."""
SETTLE_S = 3.0
LEAVES = ("zombie-memcg",)
RELEASES = ("tmpfs.remove", "zombies.reclaim")
"""What may come to light then; nobody else is ended for it."""

STOP_POINTS: list[Callable[[str, str], None]] = []
"""Called as (where, step) at every point at which a kill must leave the truth; for tests that kill there."""


def apply(plan: Plan, log: ActionLog, consent: Consent, told: Told = str) -> Plan:
    """The plan with what became of its steps. Raises OSError where the log cannot be written: nothing is done then."""
    known = history.of(log.entries(), plan.target)
    log.append(plan.target, "planned", after={"steps": [step.id for step in plan.changes]})
    done: dict[str, Step] = {}
    for step in plan.changes:
        done[step.id] = result = _one(plan, step, log, consent, known.get(step.id))
        told(result)
        if result.state == "failed":
            break
    return replace(plan, steps=tuple(done.get(step.id, step) for step in plan.steps))


def apply_in_rounds(
    plan: Plan,
    again: Callable[[], Plan],
    log: ActionLog,
    consent: Consent,
    told: Told = str,
    settle_s: float = SETTLE_S,
) -> Plan:
    """Applies a plan, and then what only shows when it is applied: until the culprit is stopped, what its last
    cgroups left is charged to it and not to the parent that survives. Such steps are planned, asked for and logged as
    any; the plan that comes back has all of them."""
    done = apply(plan, log, consent, told)
    for _ in range(ROUNDS - 1):
        if not _may_show_more(done):
            break
        time.sleep(settle_s)  # a removed cgroup goes offline by a worker of the kernel
        known = {step.id for step in done.steps}
        fresh = again()
        more = tuple(step for step in fresh.changes if step.id not in known and _releases(step))
        if not more:
            break
        result = apply(replace(fresh, steps=more), log, consent, told)
        done = replace(done, steps=_before_last_resort(done.steps, result.steps))
    return done


def _may_show_more(plan: Plan) -> bool:
    """Whether all of it is applied, and it is about what a culprit leaves behind, which no reboot is about to end."""
    done = bool(plan.changes) and all(step.state == "applied" for step in plan.changes)
    return plan.pattern in LEAVES and done and not any(map(is_reboot, plan.changes))


def _releases(step: Step) -> bool:
    return step.action is not None and step.action.kind in RELEASES


def _before_last_resort(steps: tuple[Step, ...], more: tuple[Step, ...]) -> tuple[Step, ...]:
    last = tuple(step for step in steps if step.part == "last-resort")
    return (*(step for step in steps if step not in last), *more, *last)


def _one(plan: Plan, step: Step, log: ActionLog, consent: Consent, known: StepHistory | None) -> Step:
    action = step.action
    assert action is not None
    try:
        if action.is_applied():
            return _found(plan, step, log, known)
        if not consent(step):
            log.append(plan.target, "skipped", step.id, action=recorded(action))
            return replace(step, state="skipped", why="not wanted")
        before = known.before if known is not None and known.before is not None else action.before()
    except ActionFailedError as error:
        return _failed(plan, step, log, str(error))
    return _do(plan, step, log, action, before)


def _do(plan: Plan, step: Step, log: ActionLog, action: Action, before: dict[str, Any]) -> Step:
    _stop_point("before-applying", step)
    log.append(plan.target, "applying", step.id, action=recorded(action), before=before)
    _stop_point("applying", step)
    try:
        action.apply()
        _stop_point("done", step)
        if not action.is_applied():
            raise ActionFailedError("it was done, but has already been undone by someone else")
        after = action.before()
    except ActionFailedError as error:
        return _failed(plan, step, log, str(error))
    log.append(plan.target, "applied", step.id, action=recorded(action), before=before, after=after)
    _stop_point("applied", step)
    return replace(step, state="applied")


def _found(plan: Plan, step: Step, log: ActionLog, known: StepHistory | None) -> Step:
    """Done already: by an earlier run of ours, which may have been killed before it could say so, or by others."""
    assert step.action is not None
    if known is not None and known.is_ours:
        if known.event != "applied":
            log.append(plan.target, "applied", step.id, action=recorded(step.action), before=known.before)
        return replace(step, state="applied", why="was done before")
    log.append(plan.target, "found", step.id, action=recorded(step.action))
    return replace(step, state="applied", why="it was so already")


def _failed(plan: Plan, step: Step, log: ActionLog, why: str) -> Step:
    log.append(plan.target, "failed", step.id, action=recorded(step.action), why=why)
    return replace(step, state="failed", why=why)


def recorded(action: Action | None) -> dict[str, Any] | None:
    return None if action is None else {"kind": action.kind, "arguments": action.arguments()}


def _stop_point(where: str, step: Step) -> None:
    for each in STOP_POINTS:
        each(where, step.id)
