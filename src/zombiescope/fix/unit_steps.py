"""Steps that end a unit: first what starts it (sockets, timers, paths), then the unit itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from zombiescope.base.errors import UserError
from zombiescope.base.text import printable
from zombiescope.diagnosis.plan import STOP_RISK, stops
from zombiescope.fix import guard
from zombiescope.fix.actions import unit as actions
from zombiescope.fix.actions.drop_in import LimitRestarts
from zombiescope.fix.step import Action, ActionFailedError, Part, Step, bounded, quoted
from zombiescope.node.systemd.manager import LoadedUnit

_TRIGGERS_MAX = 16
_TRIGGER_RISK = "nothing starts {of} through it any more"


def steps(
    unit: str, does: str = "", *, live: bool = True, part: Part = "lasting", cgroup: str | None = None
) -> Iterator[Step]:
    """`does`: what it is stopped for ("it leaks memory cgroups"). Not `live`: the node is not this one, so that nothing
    is asked and what starts the unit is not known. `cgroup`: where the evidence has it."""
    for trigger in _triggers(unit) if live else ():
        yield _step(trigger, f"stop {trigger}, which starts {unit}", _TRIGGER_RISK.format(of=unit), live, part)
    yield _step(unit, stops(unit, does), STOP_RISK.format(unit=unit), live, part, cgroup)


def of(step: Step, *, live: bool) -> Iterator[Step]:
    """The same step on this machine, behind those that end what starts its unit."""
    assert step.act is not None
    place = dict(step.act.arguments).get("cgroup")
    *before, mine = steps(step.act.subject, live=live, part=step.part, cgroup=place)
    yield from before
    yield replace(mine, does=step.does if mine.protects is None else mine.does, touches=mine.touches or step.touches)


def limited(unit: str, does: str = "", *, live: bool = True) -> Step:
    """For a unit that must stay: it is started less often, and not after the status that it keeps ending with."""
    known = _known(unit) if live else None
    status = known.exit_status or None if known is not None else None
    try:
        action = LimitRestarts(unit, status)
    except ValueError as error:
        return Step(f"advice:{printable(unit)}", "advice", f"no step is given: {error}", part="stop-gap")
    why = guard.protected_unit(unit)
    touches, trouble = listed(action) if live else ((), "")
    return Step(
        id=f"{action.kind}:{unit}",
        kind="change",
        does=f"keep {unit}, and start it less often" + (f": {does}" if does else ""),
        command=None,
        touches=touches,
        risk=f"{unit} stays down once it has failed so often; what it does may still leak, only slower",
        undo=f"remove {action.path} and run systemctl daemon-reload",
        verify=quoted(("systemctl", "show", "--property", "NRestarts", unit)) or "",
        part="stop-gap",
        why=trouble,
        action=action,
        protects=unit if why is not None else None,
    )


def _triggers(unit: str) -> tuple[str, ...]:
    """None where systemd does not say: the step of the unit itself says why."""
    known = _known(unit)
    return () if known is None else known.triggered_by[:_TRIGGERS_MAX]


def _known(unit: str) -> LoadedUnit | None:
    """None where systemd does not say, or has no such unit."""
    try:
        found = actions.manager().unit(unit)
    except UserError:
        return None
    return found if found.exists else None


def _step(unit: str, does: str, risk: str, live: bool, part: Part, cgroup: str | None = None) -> Step:
    try:
        action = actions.DisableUnit(unit)
    except ValueError as error:
        return Step(f"advice:{printable(unit)}", "advice", f"no command is given: {error}", part=part)
    known = _known(unit) if live else None
    also = _dependents(known)
    action = actions.DisableUnit(unit, also, cgroup)
    why = _protected(unit, known, also)
    touches, trouble = listed(action) if live else ((), "")
    command, undo = actions.commands(unit, known)
    return Step(
        id=f"{action.kind}:{unit}",
        kind="change",
        does=does if why is None else f"{does} (protected: {why})",
        command=quoted(command),
        touches=(*touches, *bounded([f"{name} needs it and stops with it" for name in also])),
        risk=risk if why is None else f"{risk}; {why}",
        undo=quoted(undo) or "",
        verify=quoted(("systemctl", "is-active", unit)) or "",
        part=part,
        why=trouble,
        action=action,
        protects=unit if why is not None else None,
    )


def _dependents(known: LoadedUnit | None) -> tuple[str, ...]:
    try:
        return actions.dependents(known) if known is not None else ()
    except ActionFailedError:
        return ()  # systemd stopped answering; whoever would stop with it stops the step


def _protected(unit: str, known: LoadedUnit | None, also: tuple[str, ...]) -> str | None:
    """By its name, by the name that it really has, by what it holds now, and by those that would stop with it."""
    why = guard.protected_unit(unit) or (guard.protected_unit(known.name) if known is not None else None)
    why = why or guard.needed_unit(known)
    if why is not None:
        return why
    if len(also) >= actions.MOST_DEPENDENTS:
        return f"{len(also)} units and more stop with it"
    found = ((name, guard.protected_unit(name)) for name in also)
    return next((f"{name} needs it and would stop with it; {reason}" for name, reason in found if reason), None)


def listed(action: Action) -> tuple[tuple[str, ...], str]:
    """What an action will touch, and why that is not known."""
    try:
        return action.touches(), ""
    except ActionFailedError as error:
        return (), str(error)
