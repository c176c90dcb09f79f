"""The option --utc of commands that choose no window, and how they print a time."""

from __future__ import annotations

from typing import Annotated

import typer

from zombiescope.questions.parameter import declared
from zombiescope.questions.window import WindowQuestion, clock, zone_of

__all__ = ["Utc", "clock", "zone_of"]

_UTC = next(each for each in declared(WindowQuestion, "command") if each.field == "utc").parameter

Utc = Annotated[bool, typer.Option("--utc", help=_UTC.help, rich_help_panel=_UTC.panel)]
