"""`zombiescope fleet top`: causes by what they cost."""

from __future__ import annotations

from typing import Annotated

import typer

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
from zombiescope.cli.output import Json, console, examples, print_document, table
from zombiescope.cli.quantities import human_count

EXAMPLES = examples(
    "fleet top ./fleet",
    "fleet top ./fleet --by job-hours --last 7d",
    "fleet top ./fleet --json | jq '.causes[0]'",
)
_ORDERS = {"gpu-seconds": "gpu_seconds_lost", "job-hours": "job_hours_lost", "nodes": "nodes", "incidents": "incidents"}


def _order(text: str) -> str:
    if text not in _ORDERS:
        raise typer.BadParameter(f"{text!r} is not a cost; it is {', '.join(_ORDERS)}")
    return text


def command(
    root: Root,
    by: Annotated[
        str, typer.Option("--by", parser=_order, metavar="COST", help="gpu-seconds, job-hours, nodes or incidents.")
    ] = "gpu-seconds",
    last: Last = "24h",  # type: ignore[assignment]  # read by its parser
    until: Until = None,
    engine: EngineName = "duckdb",
    workers: Workers = None,
    ray_address: RayAddress = None,
    results: ResultsDir = None,
    json_: Json = False,
) -> None:
    """Rank causes by their cost in GPU-seconds, job-hours, nodes or incidents.

    GPU-seconds are work that GPUs did not do because of the cause, where GPUs are recorded. Job-hours are those of
    jobs that died, where known; otherwise the time for which the incident held up its node.
    """
    with gathered(root, last, until, engine_of(engine, workers, ray_address), results) as found:
        from zombiescope.fleet.report import make

        made = make(found, engine)
    causes = sorted(made.causes, key=lambda cause: -(getattr(cause, _ORDERS[by]) or 0))
    if json_:
        document = made.document()
        names = {(cause.pattern, cause.culprit): place for place, cause in enumerate(causes)}
        listed = sorted(document["causes"], key=lambda cause: names[cause["pattern"], cause["culprit"]])
        print_document("fleet.top", {"window": document["window"], "by": by, "causes": listed})
        return
    numbers = ("GPU s", "job hours", "nodes", "incidents")
    rows = table("cause", *numbers, right=numbers, wraps="cause")
    for cause in causes:
        gpu = human_count(cause.gpu_seconds_lost)
        rows.add_row(cause.name, gpu, f"{cause.job_hours_lost:.2f}", f"{cause.nodes:,}", f"{cause.incidents:,}")
    console().print(made.headline, style="bold", soft_wrap=True)
    if causes:
        console().print(rows)
