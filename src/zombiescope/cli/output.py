"""How a command prints: one JSON document, or text for a person. Nothing else goes to stdout.

Rich leaves out colour and movement when stdout is not a terminal or NO_COLOR is set, and then keeps to 80
columns.
"""

from __future__ import annotations

import csv
import json
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from zombiescope.base.text import printable
from zombiescope.cli import progress
from zombiescope.cli.quantities import FORMATS, NUMBERS
from zombiescope.cli.typed import as_typed, called
from zombiescope.model.answer import Column, columns, csv_rows, document

if TYPE_CHECKING:
    from zombiescope.cli.terminal import PlainConsole, PlainTable

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print the rows as CSV instead of text.")]


def print_document(command: str, found: Any) -> None:
    """The JSON document of a command, its schema first. `found` is an answer, or JSON already."""
    print_object({"schema": f"zombiescope.{command}/1", **document(found)}, indent=2 if sys.stdout.isatty() else None)


def print_object(value: dict[str, Any], indent: int | None = None) -> None:
    """One JSON object on one line, at once: somebody may be reading the other end of the pipe."""
    progress.clear()
    # JSON has an escape for every control character but this one, which a terminal takes for a key.
    sys.stdout.write(json.dumps(value, indent=indent, allow_nan=False).replace("\x7f", "\\u007f") + "\n")
    sys.stdout.flush()


def console(*, stderr: bool = False) -> PlainConsole:
    """Where text for a person goes."""
    from zombiescope.cli.terminal import PlainConsole

    return PlainConsole(stderr=stderr)


def note(text: str) -> None:
    """A line on stderr: progress, warnings, what is missing."""
    progress.clear()
    sys.stderr.write(f"{printable(as_typed(text))}\n")
    sys.stderr.flush()


def command_line(command: str, directory: str | None) -> str:
    """A command as it can be pasted here: with DIR where that is not the default."""
    return f"{called()} {command}" + ("" if directory is None else f" {shlex.quote(directory)}")


def table(*columns: str, right: Iterable[str] = (), wraps: str | Sequence[str] = (), gap: int = 2) -> PlainTable:
    """A table without lines; the columns named in `right` hold numbers, and only those in `wraps` may break."""
    from zombiescope.cli.terminal import PlainTable

    made = PlainTable(box=None, padding=(0, gap, 0, 0), header_style="bold")
    numbers, breaking = set(right), {wraps} if isinstance(wraps, str) else set(wraps)
    for column in columns:
        justify: Literal["left", "right"] = "right" if column in numbers else "left"
        made.add_column(column, justify=justify, no_wrap=column not in breaking, overflow="fold")
    return made


class AnswerTable:
    """Rows of one type of answer: a column for each of its fields that has a title."""

    def __init__(self, kind: type, *, clock: Callable[[int], str] | None = None, gap: int = 2, **instead: Show) -> None:
        """`clock` shows times. `instead`: by its key, how a column is shown that its format does not describe."""
        formats = FORMATS | ({"clock": clock} if clock else {})
        self._read = [instead.get(one.key) or _shown(one, formats) for one in columns(kind)]
        numbers = [one.title for one in columns(kind) if one.format in NUMBERS]
        self.table = table(*(one.title for one in columns(kind)), right=numbers, gap=gap)

    def add(self, row: Any, style: str | None = None) -> None:
        self.table.add_row(*(read(row) for read in self._read), style=style)


def cells(kind: type, row: Any) -> list[str]:
    """What a table shows of a row."""
    return [_shown(one, FORMATS)(row) for one in columns(kind)]


Show = Callable[[Any], str]


def _shown(column: Column, formats: Mapping[str, Callable[[Any], str]]) -> Show:
    show = formats[column.format]
    return lambda row: show(column.read(row))


def print_csv(kind: type, found: Iterable[Any]) -> None:
    progress.clear()
    csv.writer(sys.stdout, lineterminator="\n").writerows(csv_rows(kind, found))
    sys.stdout.flush()


def paragraphs(text: str | None) -> str:
    """A docstring for --help: a line that ends in the source does not end there."""
    return "\n\n".join(" ".join(part.split()) for part in (text or "").split("\n\n"))


def examples(*lines: str) -> str:
    """The epilog of a command's help: what to type, one a line."""
    return "\n\n".join(["[bold]Examples[/bold]", *(f"$ zombiescope {line}" for line in lines)])
