"""`zombiescope fleet report`: what the sick nodes share that the healthy ones lack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.base.severity import rank
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
from zombiescope.cli.output import Json, console, examples, note, print_document, table
from zombiescope.cli.quantities import human_bytes, human_count, human_s
from zombiescope.cli.severity import FOUND, FailOn

if TYPE_CHECKING:
    from zombiescope.fleet.gather import Gathered
    from zombiescope.fleet.report import FleetReport

EXAMPLES = examples(
    "fleet report ./fleet",
    "fleet report ./fleet --last 7d --by zone,image",
    "fleet report s3://recordings/prod?region=eu-central-1 -o fleet.html",
    "fleet report ./fleet --engine ray --ray-address auto",
    "fleet report ./fleet --json | jq '.by[0]'",
)
_ROWS = 8


def command(
    root: Root,
    last: Last = "24h",  # type: ignore[assignment]  # read by its parser
    until: Until = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="LABEL,...", help="Compare by these labels only.", show_default=False),
    ] = None,
    engine: EngineName = "duckdb",
    workers: Workers = None,
    ray_address: RayAddress = None,
    results: ResultsDir = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write FILE.html or FILE.md.", show_default=False),
    ] = None,
    fail_on: FailOn = "warning",
    json_: Json = False,
) -> int:
    """What do the sick nodes share that the healthy ones lack?

    Nodes are compared by every label, every pair of labels and every unit, with an exact test that is corrected for all
    that was tried. What was read once is kept: the next report reads what is new.
    """
    if output is not None and output.suffix not in (".html", ".md"):
        raise typer.BadParameter(f"--output {output}: the name must end in .html or .md")
    with gathered(root, last, until, engine_of(engine, workers, ray_address), results) as found:
        from zombiescope.fleet.report import make

        labels = None if by is None else [name.strip() for name in by.split(",") if name.strip()]
        made = make(found, engine, labels)
        _check_labels(labels, made)
        if output is not None:
            _write(output, made, found)
    if json_:
        print_document("fleet.report", made.document())
    elif output is None:
        _print(made)
    worst = made.worst
    return FOUND if worst is not None and rank(worst) >= rank(fail_on) else 0


def _check_labels(asked: list[str] | None, made: FleetReport) -> None:
    """A label that no node has is a slip of the pen, and no finding that nothing is shared. Raises BadParameter."""
    known = sorted({name for node in made.nodes for name in node.labels})
    unknown = [name for name in asked or () if name not in known]
    if unknown:
        has = f"they have {', '.join(known[:20])}" if known else "they have no labels (recorder.labels sets them)"
        raise typer.BadParameter(f"--by: no node has the label {unknown[0]!r}; {has}")


def _write(output: Path, made: FleetReport, found: Gathered) -> None:
    if output.suffix == ".md":
        from zombiescope.fleet.digest import markdown

        picture.write(output, markdown(made))
        return
    from zombiescope.fleet.flames import flames
    from zombiescope.fleet.pages import page

    picture.write(output, page(made, flames(found.statistics, made.sick or None, starved=True)))


def _print(made: FleetReport) -> None:
    from zombiescope.fleet.digest import lost, moment

    out = console()
    out.print(f"{made.headline}", style="bold", soft_wrap=True)
    out.print(f"{moment(made.start_us)} to {moment(made.end_us)}; {lost(made)}", soft_wrap=True)
    out.print()
    _print_groups(made)
    _print_units(made)
    _print_causes(made)
    _print_changes(made)
    _print_clusters(made)
    _print_next(made)
    _print_nodes(made)
    _print_unread(made)


def _print_groups(made: FleetReport) -> None:
    shown = [group for group in made.by.groups if group.significant][:_ROWS]
    if not shown:
        console().print(f"labels: nothing that chance would not explain, of {made.by.tried:,} groups tried")
        console().print()
        return
    numbers = ("affected", "others", "lift", "p")
    rows = table("sick nodes share", "cause", *numbers, right=numbers,
                 wraps=("sick nodes share", "cause"))  # fmt: skip
    for group in shown:
        note_ = (
            ""
            if group.explained_by is None
            else "  (explained by the first)"
            if group.explained_by == shown[0].terms
            else "  (explained above)"
        )
        rows.add_row(
            group.text + note_, group.cause or "any", f"{group.affected}/{group.nodes}",
            f"{group.rest_affected}/{group.rest_nodes}", "∞" if group.lift is None else f"{group.lift:.1f}",
            f"{group.p_corrected:.1g}", style="bold" if group.explained_by is None else "dim",
        )  # fmt: skip
    console().print(rows)
    for group in made.by.found[:_ROWS]:
        if group.also:
            names = ", ".join("=".join(terms[0]) for terms in group.also)
            console().print(f"  {group.text}: the same nodes as {names}", soft_wrap=True)
    console().print(f"p is corrected for {made.by.tried:,} groups that were tried")
    console().print()


def _print_units(made: FleetReport) -> None:
    shown = [share for share in made.units if share.significant][:_ROWS]
    if shown:
        rows = table("unit", "on sick", "on healthy", "p", right=("on sick", "on healthy", "p"), wraps="unit")
        for share in shown:
            rows.add_row(
                share.unit,
                f"{share.sick}/{share.sick_nodes}",
                f"{share.healthy}/{share.healthy_nodes}",
                f"{share.p_corrected:.1g}",
            )
        console().print(rows)
        console().print()


def _print_causes(made: FleetReport) -> None:
    if made.causes:
        numbers = ("nodes", "incidents", "job hours", "GPU s")
        rows = table("cause", *numbers, right=numbers, wraps="cause")
        for cause in made.causes[:_ROWS]:
            rows.add_row(
                cause.name,
                f"{cause.nodes:,}",
                f"{cause.incidents:,}",
                f"{cause.job_hours_lost:.2f}",
                human_count(cause.gpu_seconds_lost),
            )
        console().print(rows)
        console().print()


def _print_changes(made: FleetReport) -> None:
    from zombiescope.fleet.digest import moment

    said = [
        f"{each.label}={each.value} arrived on {each.nodes} nodes from {moment(each.first_us)} on: "
        f"{each.sick_after} sick only after, {each.sick_before} only before (p {each.p_corrected:.1g})"
        for each in made.arrivals
        if each.significant
    ]
    said += [
        f"{each.nodes} of {each.of_nodes} nodes fell ill within two hours from {moment(each.from_us)} on"
        for each in made.onsets
    ]
    for line in said[:_ROWS]:
        console().print(f"began: {line}", soft_wrap=True)
    if said:
        console().print()


def _print_clusters(made: FleetReport) -> None:
    if made.clusters:
        rows = table(
            "like incidents, by kernel path",
            "nodes",
            "incidents",
            right=("nodes", "incidents"),
            wraps="like incidents, by kernel path",
        )
        for each in made.clusters[:_ROWS]:
            rows.add_row(" > ".join(each.path[-3:]), f"{each.nodes:,}", f"{each.incidents:,}")
        console().print(rows)
        console().print()


def _print_next(made: FleetReport) -> None:
    for each in made.outlook.nodes[:_ROWS]:
        when = "nobody fell ill of that yet" if each.hours is None else f"sick in about {human_s(each.hours * 3600)}"
        console().print(
            f"next: {each.node} has {each.dying:,} dying cgroups, {each.per_hour:,.0f} more an hour: {when}",
            soft_wrap=True,
        )
    if len(made.outlook.nodes) > _ROWS:
        console().print(f"next: and {len(made.outlook.nodes) - _ROWS:,} more nodes; --json lists them")


def _print_nodes(made: FleetReport) -> None:
    sick = made.sick
    ranked = sorted(
        (node for node in made.nodes if node.node in sick), key=lambda node: (-(node.saturated_s or 0), node.node)
    )
    if ranked:
        numbers = ("lost cores", "dying", "an hour", "restarts")
        rows = table("worst nodes", "labels", *numbers, right=numbers, wraps="labels")
        for node in ranked[:_ROWS]:
            said = ", ".join(value for key in ("image", "zone", "instance_type") if (value := node.labels.get(key)))
            rows.add_row(
                node.node,
                said,
                human_s(node.saturated_s),
                human_count(node.dying),
                human_count(node.dying_per_hour),
                human_count(node.restarts),
            )
        console().print(rows)


def _print_unread(made: FleetReport) -> None:
    ahead = [node for node in made.nodes if node.ahead_s is not None]
    changed = sum(node.labels_changed for node in made.nodes)
    if made.blind:
        note(
            f"zombiescope: {len(made.blind):,} nodes recorded nothing in this window, and are neither sick nor healthy"
        )
    if changed:
        note(
            f"zombiescope: the labels of {changed:,} nodes changed; a sick node counts with those that it fell ill with"
        )
    if ahead:
        worst = max(ahead, key=lambda node: node.ahead_s or 0)
        note(
            f"zombiescope: the clocks of {len(ahead):,} nodes are ahead of the store's, "
            f"that of {worst.node} by {human_s(worst.ahead_s)}"
        )
    if made.damage:
        node, day, what = made.damage[0]
        note(f"zombiescope: {len(made.damage):,} node-days could not be read whole, first {node} {day}: {what}")
    if made.by.left_out:
        note(f"zombiescope: {made.by.left_out:,} values of labels were too many to compare; choose labels with --by")
    note(
        f"{made.files:,} files, {human_bytes(made.size_bytes)}; {made.fresh:,} node-days read now, "
        "the others were known"
    )
