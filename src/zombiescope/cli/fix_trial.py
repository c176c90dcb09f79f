"""`zombiescope fix --try DURATION`: the isolation test, in the action log, and its answer."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import typer

from zombiescope.cli.failure import Failure
from zombiescope.cli.output import console, note, print_document
from zombiescope.cli.quantities import duration_s, within
from zombiescope.cli.recording_argument import opened

if TYPE_CHECKING:
    from zombiescope.diagnosis.incident import Actor, Incident
    from zombiescope.fix.freezer import Frozen
    from zombiescope.fix.step import Action
    from zombiescope.fix.trial import Answer, Counter

_APPEARS_S = 60.0
"""A unit that crashes again and again has no process for as long as its RestartSec."""


def trial_s(text: str) -> float:
    return within(duration_s(text), 30, 1800, "30s to 30m")


def run_trial(
    incident: Incident,
    directory: str | None,
    node: str | None,
    seconds: float,
    force: list[str],
    *,
    yes: bool,
    json_: bool,
) -> int:
    from zombiescope.fix.actions.freeze import FreezeSuspect
    from zombiescope.fix.trial_counter import CreatedCgroups
    from zombiescope.fix.verify import is_written

    suspect = incident.causes[0].culprit if incident.causes else None
    if suspect is None:
        raise Failure("the culprit of this incident is not known, so there is nothing to freeze")
    with opened(directory, node) as recording:
        if not is_written(recording):
            raise Failure("no recorder writes this recording, so whether it stops would not be seen", "start one first")
    cgroup = _cgroup(suspect, force)
    frozen = _frozen(cgroup)
    action = FreezeSuspect(frozen.to_json())
    if not yes:
        for line in action.touches():
            note(f"  touches  {line}")
        if not typer.confirm(f"Freeze {suspect.name} for {seconds:g} s?", err=True):
            return 0
    counter = CreatedCgroups(partial(opened, directory, node), cgroup, suspect.unit, suspect.container)
    note(f"freezing {suspect.name} for {seconds:g} s, then watching for another {seconds:g} s")
    answer = _logged(f"incident:{incident.id}", action, frozen, seconds, counter)
    if json_:
        made: dict[str, object] = {
            "target": f"incident:{incident.id}",
            "suspect": suspect.name,
            "steps": [],
            "verified": None,
        }
        print_document("fix", {**made, "trial": answer.document()})
    else:
        console().print(f"{suspect.name}: {answer.text}", style="bold", markup=False, soft_wrap=True)
        console().print(f"  cgroups made a second: {_rates(answer)}", markup=False, soft_wrap=True)
    return 0


def _rates(answer: Answer) -> str:
    windows = {"before": answer.before, "while it was frozen": answer.frozen, "after": answer.after}
    said = {name: amount.per_second for name, amount in windows.items()}
    return ", ".join(f"{'not known' if rate is None else f'{rate:.2f}'} {name}" for name, rate in said.items())


def _cgroup(suspect: Actor, force: list[str]) -> str:
    """Where it runs now. Failure for what is protected, or belongs to nothing that can be frozen by itself."""
    from zombiescope.fix import guard, holds

    name = suspect.unit or suspect.container
    if suspect.pod and (why := guard.never_frozen(suspect.pod, suspect.container, suspect.cgroup or "")) is not None:
        raise Failure(f"{suspect.name} is not frozen: {why}", "leave out --try: the plan needs no trial")
    if name is None:
        raise Failure(f"{suspect.subject} belongs to no unit and no container, so nothing else would stay untouched")
    why = guard.protected_unit(name) if suspect.unit else guard.protected_container(name)
    if why is not None and name not in force:
        raise Failure(f"{name} is protected: {why}", f"--force-unit {name} would freeze it nevertheless")
    found = _of_container(suspect) if suspect.unit is None else _of_unit(suspect.unit, suspect.cgroup)
    if found is None or "*" in found or found == "/":
        raise Failure(f"where {name} runs is not known")
    if (why := guard.never_frozen(suspect.pod, suspect.container, found)) is not None:
        raise Failure(f"{name} is not frozen: {why}", "leave out --try: the plan needs no trial")
    if name not in force and (why := holds.why_needed(found)) is not None:
        raise Failure(f"{name} is protected: {why}", f"--force-unit {name} would freeze it nevertheless")
    return found


def _of_unit(unit: str, recorded: str | None) -> str | None:
    """As systemd says, which has to agree with what was recorded; where no systemd answers, what was recorded."""
    from zombiescope.base.errors import UserError
    from zombiescope.diagnosis.incident import Actor
    from zombiescope.diagnosis.plan import unit_place
    from zombiescope.fix.actions import unit as units
    from zombiescope.fix.step import ActionFailedError

    evidence = unit_place(Actor(unit=unit, cgroup=recorded))
    try:
        known = units.manager().unit(unit)
    except UserError:
        return evidence
    try:
        units.refuse_elsewhere(known, evidence)
    except ActionFailedError as error:
        raise Failure(error.what, error.fix) from error
    return known.control_group or evidence


def _of_container(suspect: Actor) -> str | None:
    """Where a process of it runs now: the path that was recorded has its id as *. One that crashes again and again has
    none for a while."""
    from zombiescope.fix.freezer import place_of

    end = time.monotonic() + _APPEARS_S
    while (found := place_of(suspect.container or "")) is None and time.monotonic() < end:
        time.sleep(0.1)
    return found


def _frozen(cgroup: str) -> Frozen:
    from zombiescope.fix import freezer

    end = time.monotonic() + _APPEARS_S
    while (found := freezer.plan(cgroup)) is None:
        if time.monotonic() > end:
            raise Failure(f"no process ran in {cgroup} for {_APPEARS_S:.0f} s, so there is nothing to freeze")
        time.sleep(0.05)
    return found


def _logged(target: str, action: Action, frozen: Frozen, seconds: float, counter: Counter) -> Answer:
    """In the log before and after, so that `fix --undo` lets it go should all else fail."""
    from zombiescope.fix import log, trial
    from zombiescope.fix.apply import recorded
    from zombiescope.fix.step import ActionFailedError

    step = "trial.freeze"
    said = recorded(action)
    with log.opened() as held:
        held.append(target, "applying", step, action=said, before={"frozen": False})
        try:
            answer = trial.run(frozen, seconds, counter)
        except ActionFailedError as error:
            held.append(target, "undone", step, action=said, before={"frozen": False}, why=str(error))
            raise Failure(str(error)) from error
        held.append(target, "undone", step, action=said, before={"frozen": False}, after=answer.document())
    return answer
