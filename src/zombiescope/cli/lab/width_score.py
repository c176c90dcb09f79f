"""`zombiescope lab score --cores`: kept recordings at every width, counted, printed and put on the page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from zombiescope.cli import picture
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import console, print_document, table
from zombiescope.lab import score_hours, score_widths

DEFAULT = "2,16,96,192"
WRONG = 3


def widths_of(text: str) -> list[int]:
    """The widths of "2,16,96"."""
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise typer.BadParameter(f"--cores {text}: numbers of cores with commas between, such as {DEFAULT}")
    return found


def measured(
    place: Path, widths: Sequence[int], onto: Sequence[Path], only: str | None = None, *, live: bool = False
) -> list[dict[str, Any]]:
    """Every fault that was kept in a directory, at each width beside each background. Raises Failure."""
    from zombiescope.cli.lab import widths as wide
    from zombiescope.cli.lab.score import bar

    if not place.is_dir():
        raise Failure(f"there is no directory {place}", "`zombiescope lab score --save-recordings DIR` fills one")
    faults, healthy = wide.recordings_in(place)
    wanted = None if only is None else {name.strip() for name in only.split(",")}
    faults = {name: path for name, path in faults.items() if wanted is None or name in wanted}
    backgrounds = {one.name.removesuffix(wide.PACK): one for one in onto} or healthy
    if not backgrounds:
        raise Failure(f"there is no healthy recording in {place}", "name one with --onto")
    documents = []
    with bar() as progress:
        jobs = wide.jobs(faults, backgrounds, widths)
        task = progress.add_task("", total=len(jobs))
        for job in jobs:
            progress.update(task, description=str(job))
            documents.append(wide.outcome(job, live=live).document())
            progress.advance(task)
    return documents


def of_recordings(
    place: Path,
    widths: Sequence[int],
    onto: Sequence[Path],
    only: str | None,
    output: Path | None,
    page: Path | None,
    as_document: bool,
    live: bool,
) -> int:
    """The command where nothing is run. On a page that is there, only its section changes."""
    results = measured(place, widths, onto, only, live=live)
    document = {"results": results, "widths": score_widths.score(results)}
    if output is not None:
        picture.write(output, json.dumps(document, indent=1) + "\n")
    if page is not None:
        picture.write(page, score_widths.into(page.read_text() if page.exists() else "", results))
    if as_document:
        print_document("lab", document)
    else:
        show(results)
    return 0 if all(one["pass"] for one in results) else WRONG


def of_hours(
    place: Path,
    widths: Sequence[int],
    onto: Sequence[Path],
    output: Path | None,
    page: Path | None,
    as_document: bool,
) -> int:
    """An hour of each healthy load. On a page that is there, only its section changes. Raises Failure."""
    from zombiescope.cli.lab import healthy_hours
    from zombiescope.cli.lab import widths as wide

    if not place.is_dir():
        raise Failure(f"there is no directory {place}", "`zombiescope lab score --save-recordings DIR` fills one")
    healthy = {one.name.removesuffix(wide.PACK): one for one in onto} or wide.recordings_in(place)[1]
    if not healthy:
        raise Failure(f"there is no healthy recording in {place}", "name one with --onto")
    results = healthy_hours.hours(healthy, widths)
    document = {"hours": results}
    if output is not None:
        picture.write(output, json.dumps(document, indent=1) + "\n")
    if page is not None:
        picture.write(page, score_hours.into(page.read_text() if page.exists() else "", results))
    if as_document:
        print_document("lab", document)
    else:
        made = table(*score_hours.HEAD, right=("cores", "looks", "warnings"), wraps="load")
        for row in score_hours.rows(results):
            made.add_row(*row)
        console().print(made)
    return 0 if not any(one["alarms"] for one in results) else WRONG


def show(results: Sequence[dict[str, Any]]) -> None:
    made = table(*score_widths.HEAD, right=("cores", "healthy alone"), wraps="wrong")
    for row in score_widths.rows(score_widths.score(results)):
        made.add_row(*row)
    console().print(made)
