"""`zombiescope lab score`: every scenario, one after the other, and how often the diagnosis was right."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zombiescope.commands import drawing
from zombiescope.commands.lab.scenarios import Keep, Yes, ask, end_in_order, in_a_node, named
from zombiescope.commands.output import Json, console, examples, print_document, table

if TYPE_CHECKING:
    from rich.progress import Progress

    from zombiescope.commands.lab.performing import Outcome
    from zombiescope.lab.scenario import Scenario

EXAMPLES = examples(
    "lab score                    # all that can run here; says what and asks",
    "lab score --only zombie-tmpfs,smaps-reader --yes",
    "lab score --yes --healthy-minutes 30 -o score.json --page docs/accuracy.md",
)

WRONG = 3


def command(
    only: Annotated[
        str | None, typer.Option("--only", metavar="NAMES", help="These scenarios, with commas between.")
    ] = None,
    healthy_minutes: Annotated[
        float,
        typer.Option("--healthy-minutes", metavar="N", min=0.1, help="Healthy loads together.", show_default=True),
    ] = 4.0,
    node: Annotated[
        bool, typer.Option("--node/--no-node", help="Also those that only run in a machine of `lab node`.")
    ] = True,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the JSON there.", show_default=False)
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--page", metavar="FILE", help="Write the page there (Markdown).", show_default=False)
    ] = None,
    keep: Keep = None,
    yes: Yes = False,
    json_: Json = False,
) -> int:
    """Run every scenario that this machine is fit for, and count what was named.

    Prints the table: first pattern, culprit, seconds from the onset to a named cause, false alarms. Exits with 3 when
    a fault was named wrongly or a healthy load raised a critical alarm.
    """
    from zombiescope.lab.score import page_of, score

    chosen = _chosen(only)
    end_in_order()
    ask(chosen, yes)
    outcomes = _all(chosen, healthy_minutes * 60, node, keep)
    documents = [outcome.document() for outcome in outcomes]
    document: dict[str, Any] = {"results": documents, "score": (total := score(documents)), **total}
    if output is not None:
        drawing.write(output, json.dumps(document, indent=1) + "\n")
    if page is not None:
        drawing.write(page, page_of(documents))
    if json_:
        print_document("lab", document)
    else:
        _show(documents, total)
    return 0 if all(outcome.passed for outcome in outcomes if outcome.skipped is None) else WRONG


def _chosen(only: str | None) -> list[Scenario]:
    from zombiescope.lab.scenario import every

    return list(every()) if only is None else [named(name.strip()) for name in only.split(",") if name.strip()]


def _all(chosen: list[Scenario], healthy_s: float, node: bool, keep: Path | None) -> list[Outcome]:
    loads = sum(one.kind == "healthy" for one in chosen) or 1
    outcomes = []
    with _bar() as progress:
        task = progress.add_task("", total=len(chosen))
        for one in chosen:
            progress.update(task, description=one.id)
            outcomes.append(_one(one, healthy_s / loads, node, keep))
            progress.advance(task)
    return outcomes


def _one(scenario: Scenario, healthy_s: float, node: bool, keep: Path | None) -> Outcome:
    from zombiescope.commands.failure import Failure
    from zombiescope.commands.lab.performing import Outcome, perform
    from zombiescope.lab.failure import LabError
    from zombiescope.lab.needs import in_lab_node, lacks

    elsewhere = scenario.needs.node and not in_lab_node()
    missing = [] if elsewhere else lacks(scenario)
    if missing or (elsewhere and not node):
        return Outcome(scenario, skipped=missing[0] if missing else "only in lab node")
    try:
        if elsewhere:
            return in_a_node(scenario)
        return perform(scenario, seconds=healthy_s if scenario.kind == "healthy" else None, keep=keep)
    except (LabError, Failure) as error:
        return Outcome(scenario, skipped=str(error))


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    return Progress(*columns, console=Console(file=sys.stderr), transient=True)


def _show(documents: list[dict[str, Any]], total: dict[str, Any]) -> None:
    from zombiescope.lab.score import rows, sentence

    made = table("scenario", "expected", "found", "culprit", "named after", "", right=("named after",), wraps="culprit")
    for row in rows(documents):
        made.add_row(*row)
    out = console()
    out.print(made)
    out.print(sentence(total), style="bold")
