"""Scenarios in a machine of `lab node`: booted once, the same command in it for each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from zombiescope.commands.failure import Failure
from zombiescope.commands.output import note

if TYPE_CHECKING:
    from zombiescope.commands.lab.scenario_run import Outcome
    from zombiescope.lab.node import LabNode
    from zombiescope.lab.scenario import Scenario

LIMIT_S = 900.0


def perform_all(
    chosen: Sequence[Scenario],
    cgroup: Literal["v1", "v2"] = "v2",
    kernel: str = "bookworm",
    *,
    fix: bool = False,
) -> Iterator[Outcome]:
    """One after the other. One that fails is reported as not run. Raises LabError where the machine does
    not come up."""
    from zombiescope.commands.lab.scenario_run import Outcome
    from zombiescope.lab.node import Plan, boot

    note("booting; the first time builds the image, which takes some minutes")
    with boot(Plan(cgroup, kernel), note) as booted:
        machine = f"Linux {booted.image.release}, cgroup {cgroup}"
        where = f"lab node, {machine}"
        note(f"up: {machine}")
        for scenario in chosen:
            try:
                yield _perform(booted, scenario, where, fix)
            except Failure as error:
                yield Outcome(scenario, skipped=str(error), where=where)


def perform(scenario: Scenario, cgroup: Literal["v1", "v2"], kernel: str, *, fix: bool = False) -> Outcome:
    """One. Raises Failure where it could not run."""
    (outcome,) = perform_all([scenario], cgroup, kernel, fix=fix)
    if outcome.skipped is not None:
        raise Failure(outcome.skipped)
    return outcome


def _perform(booted: LabNode, scenario: Scenario, where: str, fix: bool) -> Outcome:
    from zombiescope.commands.lab.scenario_run import of_document
    from zombiescope.lab.failure import LabError

    try:
        more = ("--fix",) if fix else ()
        done = booted.run("zombiescope", "lab", "run", scenario.id, "--yes", "--json", *more, limit_s=LIMIT_S)
    except LabError as error:
        raise Failure(f"{scenario.id} could not run in the node: {error}") from error
    try:
        said = json.loads(done.text)
    except ValueError:
        last = done.stderr.decode(errors="replace").strip().splitlines()
        raise Failure(f"{scenario.id} could not run in the node: {last[-1] if last else done.why}") from None
    return of_document(scenario, {**said, "where": where})
