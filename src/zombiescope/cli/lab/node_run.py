"""Scenarios in a machine of `lab node`: booted once, the same command in it for each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from zombiescope.cli.failure import Failure
from zombiescope.cli.output import note

if TYPE_CHECKING:
    from zombiescope.cli.lab.scenario_run import Outcome
    from zombiescope.lab.node import LabNode
    from zombiescope.lab.scenario import Scenario

LIMIT_S = 1_800.0
EMULATED = 6.0
"""A fault may last so many times as long on an emulated machine: all that happens there takes about as much longer."""
KEPT = "/var/tmp/zombiescope-lab-kept"  # noqa: S108  in a machine in which nobody else is


def perform_all(
    chosen: Sequence[Scenario],
    cgroup: Literal["v1", "v2"] = "v2",
    kernel: str = "bookworm",
    *,
    fix: bool = False,
    keep: Path | None = None,
) -> Iterator[Outcome]:
    """One after the other; recordings are copied into `keep`. One that fails is reported as not run. Raises LabError
    where the machine does not come up."""
    from zombiescope.cli.lab.scenario_run import Outcome
    from zombiescope.lab.node import Plan, boot

    note("booting; the first time builds the image, which takes some minutes")
    with boot(Plan(cgroup, kernel), note) as booted:
        machine = f"Linux {booted.image.release}, cgroup {cgroup}"
        where = f"lab node, {machine}"
        note(f"up: {machine}")
        for scenario in chosen:
            try:
                yield _perform(booted, scenario, where, fix, keep)
            except Failure as error:
                yield Outcome(scenario, skipped=str(error), where=where)


def perform(
    scenario: Scenario,
    cgroup: Literal["v1", "v2"],
    kernel: str,
    *,
    fix: bool = False,
    keep: Path | None = None,
) -> Outcome:
    """One. Raises Failure where it could not run."""
    (outcome,) = perform_all([scenario], cgroup, kernel, fix=fix, keep=keep)
    if outcome.skipped is not None:
        raise Failure(outcome.skipped)
    return outcome


def _perform(booted: LabNode, scenario: Scenario, where: str, fix: bool, keep: Path | None) -> Outcome:
    from zombiescope.cli.lab.scenario_run import of_document
    from zombiescope.lab.failure import LabError

    try:
        done = booted.run("zombiescope", *_arguments(booted, scenario, fix, keep), limit_s=LIMIT_S)
        if keep is not None and done.stdout:
            booted.get(f"{KEPT}/{scenario.id}", keep)
            booted.run("rm", "-rf", KEPT)
    except LabError as error:
        raise Failure(f"{scenario.id} could not run in the node: {error}") from error
    try:
        said = json.loads(done.text)
    except ValueError:
        last = done.stderr.decode(errors="replace").strip().splitlines()
        raise Failure(f"{scenario.id} could not run in the node: {last[-1] if last else done.why}") from None
    ran = said["ran"] + ("" if booted.accelerated else ", emulated")
    return of_document(scenario, {**said, "where": where, "ran": ran})


def _arguments(booted: LabNode, scenario: Scenario, fix: bool, keep: Path | None) -> list[str]:
    made = ["lab", "run", scenario.id, "--yes", "--json"]
    if scenario.kind == "fault" and not booted.accelerated:
        made += ["--seconds", f"{EMULATED * scenario.seconds:.0f}"]
    made += ["--output", KEPT] if keep is not None else []
    return made + (["--fix"] if fix else [])
