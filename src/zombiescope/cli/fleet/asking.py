"""ROOT and the options that every fleet command has; progress; and the statistics, read where they are not known."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.cli.failure import Failure
from zombiescope.cli.output import note
from zombiescope.cli.quantities import duration_s

if TYPE_CHECKING:
    from zombiescope.fleet.engines import Engine
    from zombiescope.fleet.gather import Gathered, Progress
    from zombiescope.fleet.inventory import Inventory
    from zombiescope.fleet.report import FleetReport

ENGINES = ("duckdb", "ray")
_SAY_EVERY = 10
"""Lines about progress, where there is no terminal to draw a bar on."""

Root = Annotated[
    str,
    typer.Argument(
        metavar="ROOT", help="A directory or object-store address (s3://bucket/prefix) with node=NAME directories."
    ),
]


def _last_us(text: str) -> int:
    return 0 if text == "all" else round(duration_s(text) * 1e6)


def _moment_us(text: str) -> int:
    try:
        return round(float(text) * 1e6)
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a time; write 2026-04-01T12:00 (UTC) or Unix seconds") from None
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e6)


def _engine(text: str) -> str:
    if text not in ENGINES:
        raise typer.BadParameter(f"unknown engine {text!r}; choose {' or '.join(ENGINES)}")
    return text


Last = Annotated[
    int, typer.Option("--last", parser=_last_us, metavar="DURATION", help="The last 24h, 7d ... of the fleet; or all.")
]
Until = Annotated[
    int | None,
    typer.Option(
        "--to",
        "--until",
        parser=_moment_us,
        metavar="T",
        help="Its end: ISO (UTC) or Unix seconds.",
        show_default=False,
    ),
]
EngineName = Annotated[
    str, typer.Option("--engine", parser=_engine, metavar="NAME", help="duckdb: this machine. ray: a Ray cluster.")
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=1,
        max=1024,
        metavar="N",
        help="Readers at a time. Default: as many as cores.",
        show_default=False,
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        metavar="ADDRESS",
        help="A running cluster, or auto. Default: one is started here.",
        show_default=False,
    ),
]
ResultsDir = Annotated[
    Path | None,
    typer.Option(
        "--results",
        metavar="DIR",
        help="Where per-node results are kept. Default: below ~/.cache/zombiescope.",
        show_default=False,
    ),
]


LabelsFile = Annotated[
    Path | None,
    typer.Option(
        "--labels", metavar="FILE.csv", help="Add labels from an inventory: node,rack,... a line.", show_default=False
    ),
]
LabelsCommand = Annotated[
    str | None,
    typer.Option(
        "--labels-command",
        metavar="COMMAND",
        help="Add labels that COMMAND prints, as CSV or JSON.",
        show_default=False,
    ),
]
Diagnose = Annotated[
    bool,
    typer.Option("--diagnose", help="Diagnose nodes that were not judged from their recordings: seconds a node."),
]


def inventory_of(file: Path | None, command: str | None) -> Inventory | None:
    """Raises BadParameter, InventoryError."""
    if file is not None and command is not None:
        raise typer.BadParameter("--labels and --labels-command: give one of them")
    if file is None and command is None:
        return None
    from zombiescope.fleet import inventory

    return inventory.of_file(file) if file is not None else inventory.of_command(command or "")


def report_of(
    root: str,
    found: Gathered,
    engine: str,
    by: list[str] | None,
    inventory: Inventory | None,
    diagnose: bool,
    results: Path | None,
) -> FleetReport:
    """The report; with `diagnose`, after the nodes that were not judged have been diagnosed."""
    from zombiescope.fleet.report import make

    made = make(found, engine, by, inventory=inventory)
    wanted = [node.node for node in (*made.not_judged, *made.blind)]
    if not diagnose or not wanted:
        return made
    from zombiescope.fleet.judge import diagnose_nodes
    from zombiescope.fleet.results import default_directory

    place = results or default_directory(root)
    with _progress("diagnosing nodes") as progress:
        verdicts = diagnose_nodes(found.listing, wanted, made.start_us, made.end_us, place, progress)
    return make(found, engine, by, inventory=inventory, verdicts=verdicts)


def engine_of(name: str, workers: int | None, address: str | None) -> Engine:
    if name == "ray":
        from zombiescope.fleet.engines.cluster import RayEngine

        return RayEngine(address, workers)
    if address is not None:
        raise typer.BadParameter("--ray-address: only with --engine ray")
    from zombiescope.fleet.engines.local import LocalEngine

    return LocalEngine(workers)


@contextmanager
def gathered(root: str, last_us: int, until_us: int | None, engine: Engine, results: Path | None) -> Iterator[Gathered]:
    """The statistics of the window."""
    from zombiescope.fleet.gather import gather
    from zombiescope.fleet.results import default_directory

    place = results or default_directory(root)
    try:
        with _progress() as progress:
            found = gather(root, place, engine, last_us or None, until_us, progress)
    except PermissionError as error:
        raise Failure(
            f"{error.filename or root} may not be read or written by this user",
            "choose with --results where results are kept",
        ) from error
    try:
        yield found
    finally:
        found.statistics.close()


@contextmanager
def _progress(what: str = "reading node-days") -> Iterator[Progress]:
    """How far it is: a bar where there is a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        said = [0]

        def say(done: int, of: int) -> None:
            if of > 200 and done * _SAY_EVERY // of > said[0]:
                said[0] = done * _SAY_EVERY // of
                note(f"{what}: {done:,} of {of:,}")

        yield say
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)
