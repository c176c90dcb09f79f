"""--fail-on: the option of commands that find something."""

from __future__ import annotations

from typing import Annotated

import typer

from zombiescope.base.severity import SEVERITIES
from zombiescope.cli.completion import severities

FOUND = 3
"""The exit code when something was found that is severe enough."""


def _severity(text: str) -> str:
    if text not in SEVERITIES:
        raise typer.BadParameter(f"{text!r} is not a severity; it is {', '.join(SEVERITIES)}")
    return text


FailOn = Annotated[
    str,
    typer.Option(
        "--fail-on",
        parser=_severity,
        metavar="SEVERITY",
        autocompletion=severities,
        help="Exit 3 if anything found is at least this severe: info, warning, critical.",
    ),
]
