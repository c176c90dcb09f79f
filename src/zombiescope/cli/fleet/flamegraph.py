"""`zombiescope fleet flamegraph`: stacks of all nodes, and of the sick against the healthy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.cli import picture
from zombiescope.cli.fleet.asking import (
    EngineName,
    Last,
    RayAddress,
    ResultsDir,
    Root,
    Until,
    Workers,
    engine_of,
    gathered,
)
from zombiescope.cli.output import Json, console, examples, note, print_document
from zombiescope.cli.picture import Output

if TYPE_CHECKING:
    from pathlib import Path

    from zombiescope.fleet.flames import FleetFlames

EXAMPLES = examples(
    "fleet flamegraph ./fleet --starved            # on cores that the kernel held, over all nodes",
    "fleet flamegraph ./fleet --against-healthy -o sick.svg",
    "fleet flamegraph ./fleet --kernel --last 7d -o week.html",
)

NOBODY_HEALTHY = (
    "no healthy node has shipped a window, so there is nothing to compare with: set shipping.sample on the nodes "
    "(docs/shipping.md), or freeze a minute on some of them"
)


def command(
    root: Root,
    starved: Annotated[
        bool, typer.Option("--starved", help="Only on cores that the kernel held at that second.")
    ] = False,
    kernel: Annotated[bool, typer.Option("--kernel", help="Only stacks that end in the kernel.")] = False,
    against_healthy: Annotated[
        bool, typer.Option("--against-healthy", help="Sick nodes, compared with the healthy ones.")
    ] = False,
    last: Last = "24h",  # type: ignore[assignment]  # read by its parser
    until: Until = None,
    engine: EngineName = "duckdb",
    workers: Workers = None,
    ray_address: RayAddress = None,
    results: ResultsDir = None,
    output: Output = None,
    json_: Json = False,
) -> None:
    """Draw one flame graph of all nodes, from the windows that they shipped.

    With --against-healthy, red is what sick nodes do more than healthy ones, scaled to the same number of samples.
    """
    kind = picture.format_of(output) if output else None
    with gathered(root, last, until, engine_of(engine, workers, ray_address), results) as found:
        from zombiescope.fleet.flames import flames

        sick = sorted({incident.node for incident in found.statistics.incidents()}) if against_healthy else None
        made = flames(found.statistics, sick, starved=starved, kernel=kernel)
    if made.base_nodes == 0:
        note(f"zombiescope: {NOBODY_HEALTHY}")
    if output and kind:
        _write(output, kind, made)
    if json_:
        from zombiescope.query.flame import nested

        said = {"title": made.title, "nodes": made.nodes, "base_nodes": made.base_nodes}
        print_document("fleet.flamegraph", {**said, "total": made.tree.total, "root": nested(made.tree)})
    elif not output:
        _print(made)


def _write(output: Path, kind: str, made: FleetFlames) -> None:
    from zombiescope.query import svg, terminal

    if kind == "txt":
        lines = terminal.flamegraph(made.tree, picture.TEXT_COLUMNS)
        picture.write(output, f"{picture.wrapped(made.title)}\n{terminal.plain(lines)}")
        return
    drawn = svg.flamegraph(made.tree, made.title)
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>fleet</title><body style="margin:0">'
    picture.write(output, drawn if kind == "svg" else f"{head}{drawn}</body></html>\n")


def _print(made: FleetFlames) -> None:
    from zombiescope.query import terminal

    console().print(made.title, style="bold", soft_wrap=True)
    if not made.tree.width[0]:
        note("zombiescope: no incident window was shipped that has such samples")
        return
    picture.print_lines(terminal.flamegraph(made.tree, picture.text_width()))
    console().print(f"{made.tree.total:,} samples")
