"""`zombiescope lab widen`: a fault that was recorded on few cores, on one of many."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, command_line, console, examples, print_document
from zombiescope.cli.recording_argument import opened

EXAMPLES = examples(
    "lab widen fork.zscope --onto train.zscope --cores 96 -o wide",
    "lab widen fork.zscope --onto web.zscope --cores 96 --at 39 -o wide",
    "diagnose wide",
)


def command(
    fault: Annotated[str, typer.Argument(metavar="FAULT", help="The recording of a fault: a directory or a pack.")],
    cores: Annotated[int, typer.Option("--cores", metavar="N", min=1, help="How many cores the wide node has.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where the recording is written.")],
    onto: Annotated[
        list[str] | None,
        typer.Option(
            "--onto",
            metavar="BACKGROUND",
            help="The recording of a healthy load, for all other cores; may be repeated, then they take turns.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        int | None,
        typer.Option("--at", metavar="CORE", min=0, help="The fault's first core. Default: two fifths of N."),
    ] = None,
    apart: Annotated[
        float | None,
        typer.Option(
            "--apart",
            metavar="SECONDS",
            min=0,
            help="Maximum time between the starts of copies of a background, as for parts of one job. Default: "
            "anywhere in it.",
            show_default=False,
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Splice the recording of a fault onto a wide node whose other cores carry healthy loads.

    The background is repeated until every core has work, each copy at another time of its recording and with its own
    pids. Counters of the whole node are added up. The result is read like any recording.
    """
    from zombiescope.lab.wide import widen

    if output.exists() and any(output.iterdir()):
        raise Failure(f"{output} is not empty", "name a directory that is not there yet")
    with ExitStack() as stack:
        recording = stack.enter_context(opened(fault))
        backgrounds = [stack.enter_context(opened(one)) for one in onto or ()]
        made = widen(recording, backgrounds, cores, output, at=at, apart_s=apart)
    if json_:
        document = {**asdict(made), "place": str(made.place), "fault_cores": list(made.fault_cores)}
        print_document("lab", document)
        return
    first, last = made.fault_cores[0], made.fault_cores[-1]
    where = f"core {first}" if first == last else f"cores {first} to {last}"
    others = f", {made.tiles} healthy parts on the others" if made.tiles else ""
    console().print(
        f"{made.seconds:.0f} s of {made.width} cores, {made.samples:,} samples: the fault on {where}{others}"
    )
    console().print(command_line("diagnose", str(output)))
