"""A console that shows whatever somebody else chose as what it is: the one place where text reaches a terminal.

A string is one line, and so is a cell of a table: a line break in a name does not begin a line that looks like one of
ours. Of every other text all is visible that is not a line break; control sequences of rich's own pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from zombiescope._text import printable, printable_lines


class PlainConsole(Console):
    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, soft_wrap=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(printable(each) if isinstance(each, str) else each for each in objects), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control or text.isprintable() else Segment(printable_lines(text), style)


class PlainTable(Table):
    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        super().add_row(*(one_line(cell) if isinstance(cell, str | Text) else cell for cell in cells), **options)


def one_line(text: str | Text) -> Text:
    """A text of one line; one in which somebody put more than visible characters loses its colours as well."""
    if isinstance(text, str):
        return Text(printable(text))
    if text.plain.isprintable():
        return text
    return Text(printable(text.plain), style=text.style, no_wrap=text.no_wrap, overflow=text.overflow, end=text.end)
