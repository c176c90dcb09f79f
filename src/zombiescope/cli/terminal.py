"""A console that shows whatever somebody else chose as what it is: the one place where text reaches a terminal.

A string is one line, and so is a cell of a table: a line break in a name does not begin a line that looks like one of
ours. Of every other text all is visible that is not a line break; control sequences of rich's own pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from zombiescope.base.text import printable, printable_lines
from zombiescope.cli import progress

_DIGITS = tuple("0123456789")
_NARROW = 70
"""Below, every text may be folded; else those columns lose their end of which the command says so."""
_FEWEST = 8
"""Columns of a word that is folded."""


class PlainConsole(Console):
    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, soft_wrap=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        progress.clear()
        if any(isinstance(each, PlainTable) for each in objects):
            options.setdefault("crop", False)  # a number without its last digit is another number
        super().print(*(printable(each) if isinstance(each, str) else each for each in objects), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control or text.isprintable() else Segment(printable_lines(text), style)


class PlainTable(Table):
    """On a narrow terminal words are folded, and numbers stay whole, though lines may then be wider than it is."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        shown = [one_line(cell) if isinstance(cell, str | Text) else cell for cell in cells]
        super().add_row(*shown, **options)
        for column, cell in zip(self.columns, shown, strict=False):
            if isinstance(cell, Text):
                self._keep(column, cell)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        least = sum((column.min_width or 0) + self.padding[1] + self.padding[3] for column in self.columns)
        if self.width is None and least > options.max_width:
            self.width = least
        if options.max_width < _NARROW:
            for column in self.columns:
                column.no_wrap = column.justify == "right"
        yield from super().__rich_console__(console, options)

    def _keep(self, column: Column, cell: Text) -> None:
        """Numbers, and what begins with one: a time, a share."""
        is_number = column.justify == "right"
        whole = is_number or (column.no_wrap and cell.plain.lstrip(" +-").startswith(_DIGITS))
        head = cell_len(str(column.header)) if is_number else 0
        column.min_width = max(column.min_width or 0, head, cell.cell_len if whole else min(cell.cell_len, _FEWEST))


def one_line(text: str | Text) -> Text:
    """A text of one line; one in which somebody put more than visible characters loses its colours as well."""
    if isinstance(text, str):
        return Text(printable(text))
    if text.plain.isprintable():
        return text
    return Text(printable(text.plain), style=text.style, no_wrap=text.no_wrap, overflow=text.overflow, end=text.end)
