"""`zombiescope lab score`: every scenario, one after the other, and how often the diagnosis was right."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zombiescope.cli import picture
from zombiescope.cli.lab.scenarios import Fix, SaveRecordings, Yes, ask, end_in_order, named
from zombiescope.cli.output import Json, console, examples, print_document, table

if TYPE_CHECKING:
    from rich.progress import Progress

    from zombiescope.cli.lab.scenario_run import Outcome
    from zombiescope.lab.scenario import Scenario

EXAMPLES = examples(
    "lab score                    # run everything this machine supports, after asking",
    "lab score --only zombie-tmpfs,smaps-reader --yes",
    "lab score --yes --healthy-minutes 30 -o score.json --page docs/data/lab-runs.md",
    "lab score --recordings ./recordings --cores 2,16,96,192    # diagnose saved recordings; needs no root",
    "lab score --recordings ./recordings --cores 2,16 --healthy-hour    # is an hour of each healthy load quiet?",
    "lab score --hold-out --yes --resume ./hold-out --page docs/data/unseen-faults.md",
)

WRONG = 3
IN_NODE = "in-node"
"""Where recordings of the machine of `lab node` are kept, beside those of this one."""
_MARKS = {"right": ("✔", "green"), "wrong": ("✘", "bold red"), "not run": ("·", "dim")}


def command(
    only: Annotated[
        str | None, typer.Option("--only", metavar="NAMES", help="Only these scenarios, separated by commas.")
    ] = None,
    healthy_minutes: Annotated[
        float,
        typer.Option(
            "--healthy-minutes", metavar="N", min=0.1, help="Minutes of healthy loads in all.", show_default=True
        ),
    ] = 4.0,
    node: Annotated[
        bool, typer.Option("--node/--no-node", help="Also run those that need a machine of `lab node`.")
    ] = True,
    whole_node: Annotated[
        bool,
        typer.Option("--whole-node", help="Also run systemd and cgroup v2 scenarios in a machine of `lab node`."),
    ] = False,
    here: Annotated[
        bool, typer.Option("--here/--no-here", help="Run on this machine too; --no-here uses only `lab node`.")
    ] = True,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the JSON there.", show_default=False)
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--page", metavar="FILE", help="Write the page there (Markdown).", show_default=False)
    ] = None,
    save_recordings: SaveRecordings = None,
    fix: Fix = False,
    cores: Annotated[
        str | None,
        typer.Option(
            "--cores", metavar="N,...", help="Also splice every fault onto nodes of these widths.", show_default=False
        ),
    ] = None,
    recordings: Annotated[
        Path | None,
        typer.Option(
            "--recordings",
            metavar="DIR",
            help="Run nothing; use what --save-recordings wrote.",
            show_default=False,
        ),
    ] = None,
    onto: Annotated[
        list[Path] | None,
        typer.Option(
            "--onto",
            metavar="BACKGROUND",
            help="A healthy recording for the other cores; may be repeated. Default: each healthy one that was kept.",
            show_default=False,
        ),
    ] = None,
    hold_out: Annotated[
        bool, typer.Option("--hold-out", help="Run every stressor of stress-ng instead: faults without a pattern.")
    ] = False,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="DIR",
            help="With --hold-out: save recordings in DIR, and reuse those that are there.",
            show_default=False,
        ),
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option(
            "--background", metavar="NAME", help="With --hold-out: also run with this healthy load in the background."
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes",
            metavar="N",
            min=0.0,
            help="With --hold-out: begin nothing new after N minutes; 0 runs nothing.",
            show_default=False,
        ),
    ] = None,
    replay: Annotated[
        bool,
        typer.Option("--replay", help="At each width, also replay each recording to the live diagnosis."),
    ] = False,
    healthy_hour: Annotated[
        bool,
        typer.Option(
            "--healthy-hour",
            help="With --recordings: lay each healthy load end to end to an hour at each width, and replay that to the "
            "live diagnosis instead.",
        ),
    ] = False,
    yes: Yes = False,
    json_: Json = False,
) -> int:
    """Run every scenario that this machine supports, and count correct diagnoses.

    Prints first pattern, culprit, seconds from onset to a named cause, and false alarms. Exits 3 if a fault was named
    wrongly or a healthy load raised a warning.
    """
    from zombiescope.cli.lab import unseen, width_score
    from zombiescope.lab import score_widths
    from zombiescope.lab.score import score
    from zombiescope.lab.score_page import into

    if recordings is not None:
        widths = width_score.widths_of(width_score.DEFAULT if cores is None else cores)
        if healthy_hour:
            return width_score.of_hours(recordings, widths, onto or [], output, page, json_)
        return width_score.of_recordings(recordings, widths, onto or [], only, output, page, json_, replay)
    widths = [] if cores is None else width_score.widths_of(cores)
    if hold_out:
        from zombiescope.cli.lab import hold_out_score

        return hold_out_score.perform(only, resume, beside, minutes, output, page, yes, json_)
    if (resume, beside, minutes) != (None, None, None):
        raise typer.BadParameter("--resume, --background and --minutes belong to --hold-out")
    if healthy_hour:
        raise typer.BadParameter("--healthy-hour runs nothing: name a directory of healthy loads with --recordings")
    chosen = _chosen(only)
    end_in_order()
    in_a_node = _in_a_node(chosen, node, whole_node)
    chosen = chosen if here else in_a_node
    healthy_s = healthy_minutes * 60 / (sum(one.kind == "healthy" for one in chosen) or 1)
    ask(chosen, yes, healthy_s)
    with tempfile.TemporaryDirectory(prefix="zombiescope-lab-kept-") as temporary:
        kept = Path(temporary) if save_recordings is None and widths else save_recordings
        outcomes = []
        for outcome in _all(chosen if here else [], healthy_s, in_a_node, kept, fix):
            outcomes.append(outcome)
            _write(output, _document(outcomes))  # a round takes an hour: what was done stays if it breaks off
        wide = [] if kept is None or not widths else width_score.measured(kept, widths, onto or [], live=replay)
    documents = [outcome.document() for outcome in outcomes]
    document, total = _document(outcomes), score(documents)
    if wide:
        document["widths"] = {"results": wide, "score": score_widths.score(wide)}
        _write(output, document)
    if page is not None:
        text = unseen.into(into(page.read_text() if page.exists() else "", documents))
        picture.write(page, score_widths.into(text, wide) if wide else text)
    if json_:
        print_document("lab", document)
    else:
        _show(documents, total)
        if wide:
            width_score.show(wide)
    return 0 if all(outcome.passed for outcome in outcomes if outcome.skipped is None) else WRONG


def _document(outcomes: list[Outcome]) -> dict[str, Any]:
    from zombiescope.lab.score import score

    documents = [outcome.document() for outcome in outcomes]
    return {"results": documents, "score": (total := score(documents)), **total}


def _write(output: Path | None, document: dict[str, Any]) -> None:
    if output is not None:
        picture.write(output, json.dumps(document, indent=1) + "\n")


def _chosen(only: str | None) -> list[Scenario]:
    from zombiescope.lab.scenario import every

    return list(every()) if only is None else [named(name.strip()) for name in only.split(",") if name.strip()]


def _in_a_node(chosen: list[Scenario], node: bool, whole_node: bool) -> list[Scenario]:
    """What runs in a machine of `lab node`; what can only run there, first."""
    from zombiescope.lab.requirements import in_lab_node, only_in_a_node

    there = [one for one in chosen if only_in_a_node(one)] if node else []
    if whole_node and not in_lab_node():
        there += [one for one in chosen if one.whole_node and not only_in_a_node(one)]
    return there


def _all(
    chosen: list[Scenario], healthy_s: float, in_a_node: list[Scenario], keep: Path | None, fix: bool = False
) -> Iterator[Outcome]:
    from zombiescope.lab.requirements import only_in_a_node

    here = [one for one in chosen if not (only_in_a_node(one) and one in in_a_node)]
    with bar() as progress:
        task = progress.add_task("", total=len(here) + len(in_a_node))
        for one in here:
            progress.update(task, description=one.id)
            yield _here(one, healthy_s, keep, fix)
            progress.advance(task)
        if in_a_node:
            progress.update(task, description="lab node")
            for outcome in _there(in_a_node, fix, None if keep is None else keep / IN_NODE):
                progress.update(task, advance=1, description=f"{outcome.scenario.id} in lab node")
                yield outcome


def _here(scenario: Scenario, healthy_s: float, keep: Path | None, fix: bool = False) -> Outcome:
    from zombiescope.cli.failure import Failure
    from zombiescope.cli.lab.scenario_run import Outcome, perform
    from zombiescope.lab.failure import LabError
    from zombiescope.lab.requirements import lacks, only_in_a_node

    missing = lacks(scenario)
    if missing:
        return Outcome(scenario, skipped="only in lab node" if only_in_a_node(scenario) else str(missing[0]))
    try:
        return perform(scenario, seconds=healthy_s if scenario.kind == "healthy" else None, keep=keep, fix=fix)
    except (LabError, Failure) as error:
        return Outcome(scenario, skipped=str(error))


def _there(chosen: list[Scenario], fix: bool = False, keep: Path | None = None) -> Iterator[Outcome]:
    from zombiescope.cli.lab import node_run
    from zombiescope.cli.lab.scenario_run import Outcome
    from zombiescope.lab.failure import LabError

    done = 0
    try:
        for outcome in node_run.perform_all(chosen, fix=fix, keep=keep):
            done += 1
            yield outcome
    except LabError as error:
        for scenario in chosen[done:]:
            yield Outcome(scenario, skipped=str(error), where="lab node")


def bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    return Progress(*columns, console=Console(file=sys.stderr), transient=True)


def _show(documents: list[dict[str, Any]], total: dict[str, Any]) -> None:
    from rich.text import Text

    from zombiescope.lab.score import rows, sentence

    made = table("", "scenario", "found", "culprit", "after", right=("after",), wraps=("found", "culprit"))
    for name, expected, found, culprit, after, verdict in rows(documents):
        shown = found if verdict != "wrong" else f"{found}, not {expected}"
        # Its unit and cgroup are in the JSON and on the page.
        who = culprit if verdict == "not run" else culprit.partition(" ")[0]
        made.add_row(Text(*_MARKS[verdict]), name, shown, who, after)
    out = console()
    out.print(made)
    out.print(sentence(total), style="bold")
