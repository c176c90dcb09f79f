"""Man pages, made from the commands: `python -m zombiescope.cli.manual DIR` writes zombiescope.1 and one page for
each command, zombiescope-record.1 and so on. What they say is what --help says.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import typer.main

from zombiescope.cli import help as help_
from zombiescope.cli.main import application

_EXIT = (
    ("0", "done"),
    ("1", "could not run; one line on standard error says why and what to do"),
    ("2", "wrong usage"),
    ("3", "done, and something was found that is at least as severe as --fail-on says"),
    ("130", "interrupted"),
)
_ENVIRONMENT = (
    ("ZOMBIESCOPE_DIR", "the recording to read or write when none is named"),
    ("ZOMBIESCOPE_RUNTIME_DIR", "where recorders publish themselves; others are not seen"),
    ("ZOMBIESCOPE_TOKEN", "the token that the page requires, in place of one that is made"),
    ("ZOMBIESCOPE_DEBUG", "set to anything: an error shows where it comes from"),
    ("NO_COLOR", "set to anything: no colours"),
)


def pages() -> dict[str, str]:
    """File name -> page."""
    root = typer.main.get_command(application())
    found = {"zombiescope.1": _page(("zombiescope",), root)}
    for words, command in _commands(("zombiescope",), root):
        found[f"{'-'.join(words)}.1"] = _page(words, command)
    return found


def _commands(words: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, each in getattr(command, "commands", {}).items():
        yield (*words, name), each
        yield from _commands((*words, name), each)


def _page(words: tuple[str, ...], command: Any) -> str:
    name = "-".join(words)
    said = help_.paragraphs(command.help)
    parts = [
        f'.\\" Made from the command by zombiescope.cli.manual.\n.TH {name.upper()} 1 "" '
        f'"zombiescope {version("zombiescope")}" "User Commands"',
        f".SH NAME\n{_text(name)} \\- {_text(said[0].rstrip('.'))}" if said else "",
        f".SH SYNOPSIS\n.B {_text(' '.join(words))}\n{_text(help_.synopsis(command))}",
        ".SH DESCRIPTION\n" + "\n.PP\n".join(map(_text, said)),
        *_listed("COMMANDS", [(each, _first(one.help)) for each, one in getattr(command, "commands", {}).items()]),
        *_listed("ARGUMENTS", [help_.argument(one) for one in command.params if one.param_type_name == "argument"]),
        *_listed("OPTIONS", [help_.option(one) for one in command.params if one.param_type_name == "option"]),
        _examples(command.epilog),
        *(_listed("ENVIRONMENT", _ENVIRONMENT) if len(words) == 1 else ()),
        *_listed("EXIT STATUS", _EXIT),
        _see_also(words, command),
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _listed(heading: str, rows: Any) -> Iterator[str]:
    if rows:
        yield f".SH {heading}"
        yield from (f".TP\n.B {_text(term)}\n{_text(said)}" for term, said in rows)


def _examples(epilog: str | None) -> str:
    lines = help_.examples(epilog)
    return ".SH EXAMPLES\n.nf\n" + "\n".join(map(_text, lines)) + "\n.fi" if lines else ""


def _see_also(words: tuple[str, ...], command: Any) -> str:
    below = [f"{'-'.join((*words, name))}(1)" for name in getattr(command, "commands", {})]
    above = [] if len(words) == 1 else [f"{'-'.join(words[:-1])}(1)"]
    return ".SH SEE ALSO\n" + _text(", ".join([*above, *below]))


def _first(text: str | None) -> str:
    return next(iter(help_.paragraphs(text)), "")


def _text(text: str) -> str:
    """No character of it is an instruction to roff: not a point or a quote that begins a line, not a backslash."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in plain.splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m zombiescope.cli.manual", description="Writes the man page of every command."
    )
    parser.add_argument("dir", metavar="DIR", type=Path)
    place: Path = parser.parse_args().dir
    place.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (place / name).write_text(text)


if __name__ == "__main__":
    main()
