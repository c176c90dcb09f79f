"""`zombiescope fix --try DURATION`: the experiment with the suspect, in the action log, and its answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

import typer

from zombiescope.cli.failure import Failure
from zombiescope.cli.output import console, note, print_document
from zombiescope.cli.quantities import duration_s, within
from zombiescope.cli.recording_argument import opened

if TYPE_CHECKING:
    from zombiescope.diagnosis.incident import Actor, Incident
    from zombiescope.fix.experiment import Answer, Design, Experiment, Measure
    from zombiescope.fix.freezer import Frozen
    from zombiescope.fix.step import Action
    from zombiescope.store.reader import Recording

_APPEARS_S = 60.0
"""A unit that crashes again and again has no process for as long as its RestartSec."""


def trial_s(text: str) -> float:
    return within(duration_s(text), 30, 1800, "30s to 30m")


_BASELINE_S = 7.0


def run_trial(
    incident: Incident,
    directory: str | None,
    node: str | None,
    seconds: float,
    *,
    yes: bool,
    json_: bool,
) -> int:
    from zombiescope.fix.actions.freeze import FreezeSuspect
    from zombiescope.fix.experiment import Experiment
    from zombiescope.fix.verify import is_written

    suspect = (incident.causes[0].culprit or incident.causes[0].hog) if incident.causes else None
    if suspect is None:
        raise Failure("the culprit of this incident is not known, so there is nothing to freeze")
    with opened(directory, node) as recording:
        if not is_written(recording):
            raise Failure("no recorder writes this recording, so whether it stops would not be seen", "start one first")
    frozen = _frozen(_cgroup(suspect))
    action = FreezeSuspect(frozen.to_json())
    if not yes:
        for line in action.touches():
            note(f"  touches  {line}")
        if not typer.confirm(f"Freeze {suspect.name} up to 20 times, for 0.3 s at most?", err=True):
            return 0
    measure = _measure(incident, partial(opened, directory, node), frozen)
    note(f"measuring {measure.what} for {_BASELINE_S:.0f} s: can an experiment tell whether it is {suspect.name}?")
    answer = _logged(f"incident:{incident.id}", action, Experiment(frozen, measure), seconds)
    _report(incident, suspect, answer)
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
        for number, (running, while_frozen) in enumerate(answer.blocks, 1):
            line = f"  {number:>2}. running {running:.3g} {answer.unit}/s, frozen {while_frozen:.3g} {answer.unit}/s"
            console().print(line, markup=False, style="dim")
    return 0


def _measure(incident: Incident, opened_: Callable[[], AbstractContextManager[Recording]], frozen: Frozen) -> Measure:
    from zombiescope.fix import measures
    from zombiescope.fix.step import ActionFailedError

    try:
        return measures.of_incident(incident, opened_, frozen.directory)
    except ActionFailedError as error:
        raise Failure(str(error), "the plan without --try names the steps") from error


def _report(incident: Incident, suspect: Actor, answer: Answer) -> None:
    """To the recorder, so that the diagnosis of the incident has the answer and its p-value."""
    from zombiescope.base.feed import Feed

    feed = Feed()
    text = f"experiment: {suspect.name}: {answer.text}"
    fields = {
        "incident": incident.id, "suspect": suspect.name, "verdict": answer.word, "p_value": answer.p_value,
        "gone": answer.gone, "said": answer.text,
    }  # fmt: skip
    feed.event({
        "at_us": time.time_ns() // 1000, "kind": "experiment", "source": "fix", "severity": "info", "text": text,
        "fields": fields,
    })  # fmt: skip
    if not feed.flush():
        note("zombiescope: no recorder took the answer, so it is in the action log only")


def _cgroup(suspect: Actor) -> str:
    """Where it runs now. Failure for what is protected, or belongs to nothing that can be frozen by itself."""
    from zombiescope.fix import guard, holds

    name = suspect.unit or suspect.container
    if suspect.pod and (why := guard.never_frozen(suspect.pod, suspect.container, suspect.cgroup or "")) is not None:
        raise Failure(f"{suspect.name} is not frozen: {why}", "leave out --try: the plan needs no trial")
    if name is None:
        raise Failure(f"{suspect.subject} belongs to no unit and no container, so nothing else would stay untouched")
    why = guard.protected_unit(name) if suspect.unit else guard.protected_container(name)
    if why is not None:
        raise Failure(f"{name} is protected, and is never frozen: {why}", "leave out --try")
    found = _of_container(suspect) if suspect.unit is None else _of_unit(suspect.unit, suspect.cgroup)
    if found is None or "*" in found or found == "/":
        raise Failure(f"where {name} runs is not known")
    if (why := guard.never_frozen(suspect.pod, suspect.container, found)) is not None:
        raise Failure(f"{name} is not frozen: {why}", "leave out --try: the plan needs no trial")
    if (why := holds.why_needed(found)) is not None:
        raise Failure(f"{name} is protected, and is never frozen: {why}", "leave out --try")
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


def _logged(target: str, action: Action, trial: Experiment, most_s: float) -> Answer:
    """In the log before and after, so that `fix --undo` lets it go should all else fail."""
    from zombiescope.fix import log
    from zombiescope.fix.apply import recorded
    from zombiescope.fix.experiment import expected_s
    from zombiescope.fix.step import ActionFailedError

    def planned(how: Design) -> None:
        lasts_s = expected_s(how)
        if _BASELINE_S + lasts_s > most_s:
            raise ActionFailedError(f"it would take {_BASELINE_S + lasts_s:.0f} s, and may take {most_s:.0f} s")
        note(
            f"{how.blocks} freezes of {how.period_s * 1000:.0f} ms in random order, about {lasts_s:.0f} s; "
            f"a culprit is convicted in {how.power:.0%}"
        )

    step = "trial.freeze"
    said = recorded(action)
    with log.opened() as held:
        held.append(target, "applying", step, action=said, before={"frozen": False})
        try:
            answer = trial.run(planned)
        except ActionFailedError as error:
            held.append(target, "undone", step, action=said, before={"frozen": False}, why=str(error))
            raise Failure(str(error)) from error
        held.append(target, "undone", step, action=said, before={"frozen": False}, after=answer.document())
    return answer
