"""`zombiescope fleet report`: what the sick nodes share that the healthy ones lack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.base.severity import rank
from zombiescope.cli import picture
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
from zombiescope.cli.output import Json, console, examples, note, print_document, table
from zombiescope.cli.quantities import human_bytes, human_count, human_s
from zombiescope.cli.severity import FOUND, FailOnRequest

if TYPE_CHECKING:
    from zombiescope.fleet.gather import Gathered
    from zombiescope.fleet.labels import Group
    from zombiescope.fleet.report import FleetReport

EXAMPLES = examples(
    "fleet report ./fleet",
    "fleet report ./fleet --last 7d --by zone,image,age",
    "fleet report ./fleet --labels racks.csv --diagnose",
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
    labels_file: LabelsFile = None,
    labels_command: LabelsCommand = None,
    diagnose: Diagnose = False,
    engine: EngineName = "duckdb",
    workers: Workers = None,
    ray_address: RayAddress = None,
    results: ResultsDir = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write FILE.html or FILE.md.", show_default=False),
    ] = None,
    fail_on: FailOnRequest = None,
    json_: Json = False,
) -> int:
    """Find what affected nodes share that healthy ones lack.

    Compares nodes by every label, every pair of labels, every number such as their age, and every unit, with an exact
    test, corrected for the number of comparisons. A node without a diagnosis does not count as healthy. Results are
    kept: the next report reads only new data.
    """
    if output is not None and output.suffix not in (".html", ".md"):
        raise typer.BadParameter(f"--output {output}: the name must end in .html or .md")
    inventory = inventory_of(labels_file, labels_command)
    with gathered(root, last, until, engine_of(engine, workers, ray_address), results) as found:
        labels = None if by is None else [name.strip() for name in by.split(",") if name.strip()]
        made = report_of(root, found, engine, labels, inventory, diagnose, results)
        _check_labels(labels, made)
        if output is not None:
            _write(output, made, found)
    if json_:
        print_document("fleet.report", made.document())
    elif output is None:
        _print(made)
    worst = made.worst
    is_found = fail_on is not None and worst is not None and rank(worst) >= rank(fail_on)
    return FOUND if is_found else 0


def _check_labels(asked: list[str] | None, made: FleetReport) -> None:
    """A label that no node has is a slip of the pen, and no finding that nothing is shared. Raises BadParameter."""
    known = sorted({name for node in made.nodes for name in node.labels} | {each.name for each, _ in made.by.quarters})
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
    _print_course(made)
    _print_units(made)
    _print_causes(made)
    _print_changes(made)
    _print_clusters(made)
    _print_next(made)
    _print_nodes(made)
    _print_unread(made)


def sentence_of(group: Group) -> str:
    from zombiescope.fleet.report import sentence

    return sentence(group)


def _print_groups(made: FleetReport) -> None:
    shown = [group for group in made.by.groups if group.significant][:_ROWS]
    if not shown:
        tried = f"of {made.by.tried:,} groups tried"
        console().print(f"labels and numbers: nothing that chance would not explain, {tried}")
        console().print()
        return
    numbers = ("affected", "others", "lift", "p", "not judged")
    rows = table("sick nodes share", "cause", *numbers, right=numbers,
                 wraps=("sick nodes share", "cause"))  # fmt: skip
    for group in shown:
        rows.add_row(
            _named(group, shown[0]), group.cause or "any", f"{group.affected}/{group.nodes}",
            f"{group.rest_affected}/{group.rest_nodes}", "∞" if group.lift is None else f"{group.lift:.1f}",
            f"{group.p_corrected:.1g}", _if_any(group.not_judged),
            style="bold" if group.explained_by is None else "dim",
        )  # fmt: skip
    console().print(rows)
    for group in made.by.found[:_ROWS]:
        if group.also:
            console().print(f"  {group.full_text}", soft_wrap=True)
    for group in shown:
        if group.because is not None:
            spared = "is spared" if group.spared else "is sick"
            console().print(f"  {group.text} {spared} because {group.because}", soft_wrap=True)
    console().print(f"p is corrected for {made.by.tried:,} groups that were tried")
    console().print()


def _named(group: Group, first: Group) -> str:
    spared = " (spared)" if group.spared else ""
    if group.explained_by is None:
        return f"{group.text}{spared}"
    return f"{group.text}{spared}  (explained {'by the first' if group.explained_by == first.terms else 'above'})"


def _if_any(count: int) -> str:
    return f"{count:,}" if count else ""


def _print_course(made: FleetReport) -> None:
    """Numbers that are steps of the illness."""
    shown = [group for group in made.by.course if group.significant and group.explained_by is None]
    for group in shown:
        console().print(f"mechanism: {sentence_of(group)} (p {group.p_corrected:.1g})", soft_wrap=True)
    if shown:
        console().print()


def _print_units(made: FleetReport) -> None:
    shown = [share for share in made.units if share.significant][:_ROWS]
    if shown:
        numbers = ("on sick", "on healthy", "p", "not judged")
        rows = table("unit", *numbers, right=numbers, wraps="unit")
        for share in shown:
            rows.add_row(
                share.unit,
                f"{share.sick}/{share.sick_nodes}",
                f"{share.healthy}/{share.healthy_nodes}",
                f"{share.p_corrected:.1g}",
                _if_any(share.not_judged),
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
        when = "no node fell ill of that yet" if each.hours is None else f"sick in about {human_s(each.hours * 3600)}"
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
    from zombiescope.fleet.digest import remarks

    for line in remarks(made):
        note(f"zombiescope: {line}")
    note(
        f"{made.files:,} files, {human_bytes(made.size_bytes)}; {made.fresh:,} node-days read now, "
        "the others were known"
    )
