"""--fail-on: the option of commands that find something."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from zombiescope.base.severity import SEVERITIES
from zombiescope.cli.completion import severities

FOUND = 3
"""The exit code when something was found that is severe enough."""


def _severity(text: str) -> str:
    if text not in SEVERITIES:
        raise typer.BadParameter(f"unknown severity {text!r}; choose {', '.join(SEVERITIES)}")
    return text


_OPTION: dict[str, Any] = {
    "parser": _severity,
    "metavar": "SEVERITY",
    "autocompletion": severities,
    "help": "Exit 3 if anything found is at least this severe: info, warning, critical.",
}
FailOn = Annotated[str, typer.Option("--fail-on", **_OPTION)]
FailOnRequest = Annotated[str | None, typer.Option("--fail-on", show_default=False, **_OPTION)]
"""Of commands that explain: finding something is what they are for, and no failure unless asked."""
