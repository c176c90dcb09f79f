"""Where a picture goes: the terminal, or the file that -o names; its ending says what is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from zombiescope.base import safe_files
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import command_line, console, note
from zombiescope.cli.quantities import human_bytes
from zombiescope.cli.recording_argument import recorded_range, why_no_stacks

if TYPE_CHECKING:
    from zombiescope.query.selection import Filters
    from zombiescope.query.terminal import Line

FORMATS = ("html", "svg", "txt")
TEXT_COLUMNS = 80
MAX_COLUMNS = 200

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write FILE.html (interactive), FILE.svg or FILE.txt.",
        show_default=False,
    ),
]


def format_of(output: Path) -> str:
    """html, svg or txt. Raises typer.BadParameter."""
    ending = output.suffix.removeprefix(".").lower()
    if ending not in FORMATS:
        raise typer.BadParameter(f"--output {output}: the name must end in .html, .svg or .txt")
    return ending


def write(output: Path, text: str) -> None:
    """The file whole or not at all: a reader never sees half of it."""
    try:
        with safe_files.output(output, 0o640) as file:  # as a pack: it says what others run
            file.write(text.encode())
    except OSError as error:
        raise Failure(
            f"{output} could not be written: {error.strerror}", "name a file that you may write, with -o"
        ) from error
    note(f"{output}: {human_bytes(output.stat().st_size)}")


def write_page(output: Path, make: Callable[[], str]) -> None:
    """A page as one file. Raises Failure where none was built."""
    from zombiescope.web.frozen import NotBuiltError

    try:
        text = make()
    except NotBuiltError as error:
        raise Failure(
            f"{output}: {error.what}", "'make setup' builds it; other endings of the name need no page"
        ) from error
    write(output, text)


def print_lines(lines: Sequence[Line]) -> None:
    """Pieces with the colours that the terminal has."""
    from rich.text import Text

    out = console()
    for line in lines:
        text = Text(no_wrap=True, overflow="crop", end="")
        for piece in line:
            style = f"black on {piece.behind}" if piece.behind else piece.colour or ""
            text.append(piece.text, style)
        if not out.color_system:
            text.rstrip()
        out.print(text)


def wrapped(text: str) -> str:
    """The lines of a text file, none wider than a terminal."""
    from textwrap import fill

    return "\n".join(fill(line, TEXT_COLUMNS) for line in text.splitlines())


def text_width() -> int:
    return min(console().width, MAX_COLUMNS)


def say_empty(filters: Filters, directory: str | None) -> None:
    """Why there is nothing to see."""
    what, fix = _why_empty(filters, directory)
    note(f"zombiescope: {what}{fix}")


def refuse_empty(output: Path, filters: Filters, directory: str | None) -> NoReturn:
    """A picture of nothing is not written."""
    what, fix = _why_empty(filters, directory)
    raise Failure(f"{output} was not written: {what}", fix.lstrip(" ;:"))


def _why_empty(filters: Filters, directory: str | None) -> tuple[str, str]:
    from zombiescope.questions.filters import words

    if refused := why_no_stacks():
        return "stacks were not recorded", f": {refused}"
    why = f"with {said}" if (said := words(filters)) else "in this window"
    look = command_line("info", directory)
    return f"no samples {why}", f"; recorded is {recorded_range()}; '{look}' shows what there is"
