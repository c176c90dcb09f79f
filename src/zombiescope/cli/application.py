"""An application of typer whose help shows a switch as a switch: `--json`, and not `--json <bool>`, which reads as if a
value had to follow (typer from 0.28 on)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter  # typer brings its own click


def _show_as_switches(command: TyperCommand | TyperGroup, context: Context) -> None:
    for each in command.get_params(context):
        if isinstance(each, TyperOption) and each.is_flag and each.metavar is None:
            each.metavar = ""


class _Command(TyperCommand):
    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        _show_as_switches(self, ctx)
        super().format_help(ctx, formatter)


class _Group(TyperGroup):
    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        _show_as_switches(self, ctx)
        super().format_help(ctx, formatter)


class Application(typer.Typer):
    def __init__(self, **options: Any) -> None:
        super().__init__(cls=_Group, **options)

    def command(  # type: ignore[override]  # its other options are typer's own
        self, name: str | None = None, **options: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        return super().command(name, cls=_Command, **options)
