"""`zombiescope fleet digest`: a week of the fleet, for people who were not there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from zombiescope.cli import picture, progress
from zombiescope.cli.fleet.asking import (
    Diagnose,
    EngineName,
    LabelsCommand,
    LabelsFile,
    Last,
    RayAddress,
    ResultsDir,
    Root,
    Until,
    Workers,
    engine_of,
    gathered,
    inventory_of,
    report_of,
)
from zombiescope.cli.output import examples

EXAMPLES = examples(
    "fleet digest ./fleet                       # Markdown on standard output",
    "fleet digest ./fleet -o week.html",
    "fleet digest ./fleet --last 1d -o today.md",
)


def command(
    root: Root,
    last: Last = "7d",  # type: ignore[assignment]  # read by its parser
    until: Until = None,
    labels_file: LabelsFile = None,
    labels_command: LabelsCommand = None,
    diagnose: Diagnose = False,
    engine: EngineName = "duckdb",
    workers: Workers = None,
    ray_address: RayAddress = None,
    results: ResultsDir = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write FILE.md or FILE.html.", show_default=False),
    ] = None,
) -> None:
    """Summarise a week on one page: what was lost, what sick nodes share, what began, which nodes are at risk, and
    what changed from the week before.
    """
    if output is not None and output.suffix not in (".md", ".html"):
        raise typer.BadParameter(f"--output {output}: the name must end in .md or .html")
    if not last:
        raise typer.BadParameter("--last: a digest is of a span of time; name it, as 7d")
    reader = engine_of(engine, workers, ray_address)
    inventory = inventory_of(labels_file, labels_command)
    from zombiescope.fleet.digest import markdown
    from zombiescope.fleet.report import make

    with gathered(root, last, until, reader, results) as found:
        made = report_of(root, found, engine, None, inventory, diagnose, results)
        if output is not None and output.suffix == ".html":
            from zombiescope.fleet.flames import flames
            from zombiescope.fleet.pages import page

            picture.write(output, page(made, flames(found.statistics, made.sick or None, starved=True)))
            return
    with gathered(root, last, made.start_us, reader, results) as earlier:
        before = make(earlier, engine, inventory=inventory) if earlier.statistics.nodes() else None
    text = markdown(made, before if before is not None and any(node.recorded_s for node in before.nodes) else None)
    if output is None:
        progress.clear()
        sys.stdout.write(text)
    else:
        picture.write(output, text)
