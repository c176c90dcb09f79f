"""An application of typer whose --help is ours (help.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from zombiescope.cli import help as help_

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter  # typer brings its own click


class _Command(TyperCommand):
    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        formatter.write(help_.text(self, ctx.command_path))


class _Group(TyperGroup):
    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        formatter.write(help_.text(self, ctx.command_path))


class Application(typer.Typer):
    def __init__(self, **options: Any) -> None:
        super().__init__(cls=_Group, **options)

    def command(  # type: ignore[override]  # its other options are typer's own
        self, name: str | None = None, **options: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        return super().command(name, cls=_Command, **options)
