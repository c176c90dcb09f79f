"""`zombiescope lab list` and `lab run`: one real fault, from the first word to the comparison with the truth."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from zombiescope.cli.completion import scenarios
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, console, examples, note, print_document, table

if TYPE_CHECKING:
    from zombiescope.cli.lab.scenario_run import Outcome
    from zombiescope.lab.scenario import Scenario

EXAMPLES = examples(
    "lab list",
    "lab run smaps-reader         # says what it will do, and asks",
    "lab run zombie-tmpfs --yes --json",
    "lab run global-reclaim --in-node",
    "lab run mount-storm --yes --output ./recordings",
)

WRONG = 3

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
_COPIED = {"metavar": "DIR", "show_default": False}
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Copy the recording into DIR.", **_COPIED)]
SaveRecordings = Annotated[
    Path | None, typer.Option("--save-recordings", help="Copy each recording into DIR/NAME.", **_COPIED)
]
Fix = Annotated[
    bool, typer.Option("--fix", help="Also apply the plan of what leaks zombies (`fix --apply --yes`), and verify it.")
]


def list_(json_: Json = False) -> None:
    """List the faults that this machine can run, and what each scenario needs."""
    from zombiescope.lab.requirements import lacks, only_in_a_node
    from zombiescope.lab.scenario import every

    if json_:
        print_document("lab", {"scenarios": [_listed(one) for one in every()]})
        return
    made = table("scenario", "truth", "what it is", "here", wraps="what it is")
    for one in every():
        missing = lacks(one)
        truth = one.truth.pattern or "healthy"
        here = "yes" if not missing else "in lab node" if only_in_a_node(one) else missing[0].what
        made.add_row(one.id, truth, one.title, here)
    console().print(made)


def _listed(one: Scenario) -> dict[str, object]:
    from zombiescope.lab.requirements import lacks

    needs = one.needs
    return {
        "id": one.id,
        "kind": one.kind,
        "title": one.title,
        "does": one.does,
        "expected": one.truth.document(),
        "frames": one.frames or None,
        "seconds": one.seconds,
        "memory_bytes": None if needs.node else needs.memory_bytes,
        "cores": needs.cores,
        "root": needs.root,
        "lacks": [str(lack) for lack in lacks(one)],
    }


def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A scenario of `lab list`.", autocompletion=scenarios)],
    yes: Yes = False,
    in_node: Annotated[
        bool, typer.Option("--in-node", help="Run it in a machine of `lab node`, not on this one.")
    ] = False,
    cgroup: Annotated[Literal["v1", "v2"], typer.Option("--cgroup", help="Cgroup version of that machine.")] = "v2",
    kernel: Annotated[
        str,
        typer.Option("--kernel", metavar="SUITE|FILE", help="Its kernel: bookworm, trixie, bullseye, or a bzImage."),
    ] = "bookworm",
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            metavar="N",
            min=1.0,
            help="How long it lasts, a fault at most. Default: the scenario's own.",
            show_default=False,
        ),
    ] = None,
    output: Output = None,
    fix: Fix = False,
    json_: Json = False,
) -> int:
    """Start a fault, record and diagnose it, end it, and compare the diagnosis with the truth.

    Says what it will do and asks first. Uses only its own cgroups, namespaces and directories, and always removes
    them. Exits 3 if the diagnosis was wrong.
    """
    scenario = named(name)
    _may_last(scenario, seconds, in_node)
    end_in_order()
    if in_node:
        from zombiescope.cli.lab import node_run

        outcome = node_run.perform(scenario, cgroup, kernel, fix=fix, keep=output)
    else:
        allowed(scenario)
        ask([scenario], yes)
        from zombiescope.cli.lab.scenario_run import perform

        outcome = perform(scenario, seconds=seconds, keep=output, fix=fix)
    if json_:
        print_document("lab", outcome.document())
    else:
        _show(outcome)
    return 0 if outcome.passed else WRONG


def _may_last(scenario: Scenario, seconds: float | None, in_node: bool) -> None:
    """A machine that is not thrown away is not hurt for longer than a minute."""
    from zombiescope.lab.requirements import in_lab_node
    from zombiescope.lab.scenario import LONGEST_S

    if seconds is None:
        return
    if in_node:
        raise typer.BadParameter("--seconds: with --in-node the machine decides that, by its speed; leave out one")
    if scenario.kind == "fault" and seconds > LONGEST_S and not in_lab_node():
        raise typer.BadParameter(f"--seconds: a fault may last {LONGEST_S} s at most on this machine")


def named(name: str) -> Scenario:
    from zombiescope.lab.scenario import by_id

    try:
        return by_id(name)
    except KeyError:
        raise typer.BadParameter(f"{name!r} is not a scenario; see 'zombiescope lab list'") from None


def allowed(scenario: Scenario) -> None:
    from zombiescope.lab.requirements import lacks

    missing = lacks(scenario)
    if missing:
        raise Failure(f"{scenario.id} cannot run here: {missing[0]}")


def ask(chosen: list[Scenario], yes: bool, healthy_s: float | None = None) -> None:
    """Says what will happen to this machine; goes on only with a yes. `healthy_s` is how long a healthy load is to go
    on."""
    for one in chosen:
        seconds = healthy_s if healthy_s is not None and one.kind == "healthy" else one.seconds
        note(f"{one.id}: {one.does}" + ("" if one.kind == "replay" else f"; for {seconds:.0f} s at most"))
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure("this asks for confirmation, and there is no terminal to ask on", "add --yes")
    typer.confirm("Continue?", abort=True, err=True)


def end_in_order() -> None:
    """SIGTERM is to clean up as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def _show(outcome: Outcome) -> None:
    from zombiescope.lab.score import QUIET

    scenario, found = outcome.scenario, outcome.found
    out = console()
    made = table("", "expected", "found", wraps="found")
    made.add_row("pattern", scenario.truth.pattern or QUIET, found.pattern or "nothing")
    if scenario.kind == "fault":
        made.add_row("hog", scenario.truth.hog or "-", found.hog or "-")
        made.add_row("culprit", " ".join(scenario.truth.blames) or "-", found.culprit or "-")
    out.print(made)
    if found.summary:
        out.print(found.summary)
    if outcome.fix is not None:
        before, after = outcome.fix["cgroups_before_fix"], outcome.fix["cgroups_after_fix"]
        out.print(f"fix: {outcome.fix['verdict']}; memory cgroups: {before:,} -> {after:,}")
        for text in outcome.fix["checks"]:
            out.print(f"  {text}")
    for step in outcome.harm:
        out.print(f"harmful: {step}")
    for alarm in outcome.alarms:
        said = alarm["causes"][0]["summary"] if alarm["causes"] else alarm["id"]
        out.print(f"false alarm: {alarm['severity']}: {said}")
    seconds = outcome.onset_to_named_s
    when = (
        ""
        if scenario.kind != "fault"
        else "; never named live"
        if seconds is None
        else f"; named after {seconds:.1f} s"
    )
    out.print(f"{'right' if outcome.passed else 'wrong'}{when}", style="bold")
