"""The plan for an incident, on the machine itself: the one that diagnose shows, with what is known only here.

Steps that say what they do as data (an `Act`) get the action that does it. What ends a unit is made again, with what
the machine knows now: the pattern saw the recording, and not which timer starts the unit today.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from zombiescope.diagnosis import incident_plan
from zombiescope.diagnosis.incident import Cause, Incident
from zombiescope.fix import actions, guard, nic_steps, process_steps, unit_steps, zombie_steps
from zombiescope.fix.actions.container import NoRestart, StopContainer
from zombiescope.fix.step import ActionFailedError
from zombiescope.model.plans.plan import Plan, distinct
from zombiescope.model.plans.step import RELEASE, Act, Action, Step, quoted

More = Callable[[Incident, Cause, bool], Iterator[Step]]
MORE: dict[str, tuple[More, ...]] = {
    pattern: tuple(made.steps for made in (nic_steps, process_steps) if pattern in made.PATTERNS)
    for pattern in {*nic_steps.PATTERNS, *process_steps.PATTERNS}
}
"""Steps beside those that the pattern's fix has, by pattern: (incident, cause, is this the node) -> steps."""


def plan(
    incident: Incident, node: str, *, live: bool = True, force: Collection[str] = (), keep: Collection[str] = ()
) -> Plan:
    """`live`: the incident is of this machine, which may be asked. `force`: protected units that may be changed;
    `keep`: units that must stay, and are only started less often."""
    known = incident_plan.plan(incident, node)
    if not incident.causes:
        return known
    cause = incident.causes[0]
    last = [step for step in known.steps if step.part == "last-resort"]
    more = list(_more(incident, cause, live))
    absent = {cause.culprit.unit} if cause.culprit and any(process_steps.is_one(step) for step in more) else set()
    first = [made for step in known.steps if step not in last for made in _on_this_machine(step, live, keep, absent)]
    released = list(_released(cause, {*keep, *absent})) if live else []
    steps = [*more, *_forced(cause, force, live), *first, *released, *last]
    return replace(known, steps=distinct(_after_force(steps, force)))


def _on_this_machine(
    step: Step, live: bool, keep: Collection[str], absent: Collection[str | None] = ()
) -> Iterator[Step]:
    """`absent`: a unit that is only a name in a path, and whose process has a step of its own."""
    if step.act is None or (step.act.kind == RELEASE and not live):
        yield step
    elif step.act.kind == RELEASE or (step.act.kind == "unit.disable" and step.act.subject in absent):
        return
    elif step.act.kind == "unit.disable" and step.act.subject in keep:
        yield unit_steps.limited(step.act.subject, step.does.partition(": ")[2], live=live)
    elif step.act.kind == "unit.disable":
        yield from unit_steps.of(step, live=live)
    else:
        yield acting(step, step.act, live)


def _released(cause: Cause, keep: Collection[str | None]) -> Iterator[Step]:
    """What keeps the dead of the evidence, in place of the words that the pattern has for it."""
    acts = [step.act for step in cause.fix.steps if step.act is not None and step.act.kind == RELEASE]
    if acts:
        yield from zombie_steps.steps([path for _, path in acts[0].arguments], _ending(cause, keep))


def _ending(cause: Cause, keep: Collection[str | None]) -> set[str]:
    """Directories that go when the culprit is stopped by an earlier step."""
    acts = [step.act for step in cause.fix.steps if step.act is not None]
    units = {act.subject for act in acts if act.kind == "unit.disable"} - set(keep)
    container = cause.culprit.container if cause.culprit is not None else None
    if container is None or not any(act.kind == "container.stop" for act in acts):
        return {unit for unit in units if unit}
    return {*units, container, f"docker-{container}.scope", f"libpod-{container}.scope"}


def acting(step: Step, act: Act, live: bool) -> Step:
    """With its action, and what that touches now."""
    try:
        action = actions.make(act.kind, dict(act.arguments))
    except ActionFailedError as error:
        return replace(step, why=str(error))
    if live and isinstance(action, NoRestart | StopContainer) and action.id is None:
        return replace(step, why="the id of this container was not recorded, and a name may be another's")
    touches, trouble = unit_steps.listed(action) if live else ((), "")
    protected = _protected(action, act.subject) if act.kind.startswith("container.") else None
    return replace(
        step, action=action, touches=touches or step.touches, why=trouble,
        command=quoted(action.command()) or step.command, protects=act.subject if protected else None,
    )  # fmt: skip


def _protected(action: Action, name: str) -> str | None:
    """By its name, and by its id where it carries whoever runs this."""
    identity = action.id if isinstance(action, NoRestart | StopContainer) else None
    return guard.protected_container(name) or (identity and guard.carries_us(identity)) or None


def _forced(cause: Cause, force: Collection[str], live: bool) -> Iterator[Step]:
    """A protected unit is only advice to a pattern; whoever names it wants it as a step."""
    unit = cause.culprit.unit if cause.culprit is not None else None
    known = {step.act.subject for step in cause.fix.steps if step.act is not None}
    if unit is not None and unit in force and unit not in known:
        yield from unit_steps.steps(unit, "it is the culprit", live=live)


def _after_force(steps: list[Step], force: Collection[str]) -> Iterator[Step]:
    """What is protected and was not named is shown, and not done."""
    for step in steps:
        if step.protects is None or step.protects in force:
            yield step
        else:
            hint = f"it is protected; --force-unit {step.protects} would do it"
            yield replace(step, action=None, state="skipped", why=hint)


def _more(incident: Incident, cause: Cause, live: bool) -> Iterator[Step]:
    for make in MORE.get(cause.pattern, ()):
        yield from make(incident, cause, live)
