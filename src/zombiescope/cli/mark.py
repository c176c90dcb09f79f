"""`zombiescope mark`: a line on the time axis."""

from __future__ import annotations

from typing import Annotated

import typer

from zombiescope._mark import mark
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, examples, print_document

EXAMPLES = examples(
    'mark "epoch 12 starts"',
    'mark "deploy 4f2c91" || true   # whether a recorder runs or not',
)


def command(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to write on the time axis.")],
    json_: Json = False,
) -> None:
    """Put a mark on the time axis.

    The recorder of this machine stores it as an event. From Python: zombiescope.mark("epoch 12").
    """
    if not text.strip():
        raise typer.BadParameter("TEXT is empty")
    if not mark(text):
        raise Failure("no recorder on this machine took the mark", "start one with 'zombiescope up'")
    if json_:
        print_document("mark", {"text": text, "marked": True})
