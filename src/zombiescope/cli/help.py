"""What --help prints, for `zombiescope` and each of its commands: what it does, examples, then options.

typer's own help shows types of Python, wraps inside words and puts examples last. This one is plain text of at most 96
columns, with bold headings on a terminal. The man pages (manual.py) use the same names and values.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from enum import EnumType
from textwrap import wrap
from typing import Any, Literal, get_args, get_origin

_MARKUP = re.compile(r"\[/?[a-z]+(?: [a-z]+)*\]")
_WIDEST = 96
_TERM = 28
"""Columns of an option; a longer one has its help on the next line."""

Row = tuple[str, str]


def text(command: Any, path: str) -> str:
    return "\n".join(_lines(command, path, min(shutil.get_terminal_size().columns, _WIDEST))) + "\n"


def _lines(command: Any, path: str, width: int) -> Iterator[str]:
    yield f"Usage: {path} {synopsis(command)}"
    for paragraph in paragraphs(command.help):
        yield ""
        yield from wrap(paragraph, width - 2, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    if lines := examples(command.epilog):
        yield from ("", _bold("Examples:"), *(f"  {line}" for line in lines))
    elif command.epilog:
        yield ""
        for paragraph in paragraphs(command.epilog):
            yield from wrap(paragraph, width - 2, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    found = sections(command)
    below = getattr(command, "commands", {})
    terms = below or [term for rows in found.values() for term, _ in rows]
    column = min(max(map(len, terms)), _TERM) + 4
    for heading, rows in found.items():
        yield from ("", _bold(f"{heading}:"), *_rows(rows, column, width))


def sections(command: Any) -> dict[str, list[Row]]:
    """Heading -> rows, in the order of the command."""
    found: dict[str, list[Row]] = {}
    for name, one in getattr(command, "commands", {}).items():
        found.setdefault(getattr(one, "rich_help_panel", None) or "Commands", []).append((name, _summary(one.help)))
    shown = [one for one in command.params if not getattr(one, "hidden", False)]
    for one in shown:
        if one.param_type_name == "argument":
            found.setdefault("Arguments", []).append(argument(one))
    options: dict[str, list[Row]] = {"Options": []}
    for one in shown:
        if one.param_type_name == "option":
            options.setdefault(getattr(one, "rich_help_panel", None) or "Options", []).append(option(one))
    options["Options"].append(("-h, --help", "Show this help."))
    return found | options


def synopsis(command: Any) -> str:
    if getattr(command, "commands", None):
        return "COMMAND [OPTIONS]"
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    names = [(argument(one)[0] + ("..." if one.nargs == -1 else ""), one.required) for one in arguments]
    return " ".join(["[OPTIONS]", *(name if must or name.startswith("[") else f"[{name}]" for name, must in names)])


def argument(one: Any) -> Row:
    return (one.metavar or one.name.upper()), one.help or ""


def option(one: Any) -> Row:
    """As "-o, --output FILE", short names first."""
    names = ", ".join(sorted(one.opts, key=lambda name: name.startswith("--")))
    names += "".join(f", {name}" for name in one.secondary_opts)
    value = "" if one.is_flag else f" {one.metavar or _choices(one) or 'VALUE'}"
    default = one.default if one.show_default and isinstance(one.default, str | int | float) else None
    shown = "" if default is None or isinstance(default, bool) or default == "" else f" Default: {default}."
    return names + value, f"{one.help or ''}{shown}"


def _choices(one: Any) -> str:
    """Of a Literal or an Enum."""
    annotation: Any = one.type_descriptor.annotation
    if get_origin(annotation) is Literal:
        return "|".join(map(str, get_args(annotation)))
    members: list[Any] = list(annotation) if isinstance(annotation, EnumType) else []
    return "|".join(str(each.value) for each in members)


def paragraphs(said: str | None) -> list[str]:
    return [" ".join(_MARKUP.sub("", part).split()) for part in (said or "").split("\n\n") if part.strip()]


def examples(epilog: str | None) -> list[str]:
    return [line.removeprefix("$ ") for line in (epilog or "").splitlines() if line.startswith("$ ")]


def _summary(said: str | None) -> str:
    """The first sentence."""
    return next(iter(paragraphs(said)), "").partition(". ")[0].rstrip(".")


def _rows(rows: Iterable[Row], column: int, width: int) -> Iterator[str]:
    for term, said in rows:
        lines = wrap(said, max(width - column, 20), break_on_hyphens=False, break_long_words=False) or [""]
        if len(term) > column - 3:
            yield f"  {term}"
        else:
            yield f"  {term:<{column - 2}}{lines.pop(0)}".rstrip()
        yield from (" " * column + line for line in lines)


def _bold(heading: str) -> str:
    plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return heading if plain else f"\x1b[1m{heading}\x1b[0m"
