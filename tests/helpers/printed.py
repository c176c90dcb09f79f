"""Command lines as the product prints them: where they stand, and what is in them.

A line may be a whole shell line (a pipe, a redirection, a comment behind it); `ours` gives the invocations of
zombiescope in it, `programs` the names of all programs that it starts.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import typer.main

from zombiescope.cli.main import application

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "zombiescope"

_PREFIXES = ("sudo", "$")
_OPERATORS = re.compile(r"[|&;<>()]+")
_QUOTED = re.compile(r"[`']((?:sudo )?zombiescope [^`']+)[`']")
_SHOWN = re.compile(r"(?: {4}|\t)(?:\$ )?((?:sudo )?(?:\S*/)?(?:zombiescope|make) [a-z].*)")
_COMMANDS = "|".join(typer.main.get_command(application()).commands)  # type: ignore[attr-defined]
_BARE = re.compile(rf"(?:^|: |use )((?:sudo )?zombiescope (?:{_COMMANDS})(?: .*)?)$")


def words(line: str) -> list[str]:
    """The words of a shell line, operators among them, without its comment."""
    split = shlex.shlex(line, posix=True, punctuation_chars=True)
    split.whitespace_split = True
    return list(split)


def simple(line: str) -> Iterator[list[str]]:
    """The commands between pipes and the like; where it is redirected to does not count."""
    command: list[str] = []
    redirected = False
    for word in [*words(line), ";"]:
        if _OPERATORS.fullmatch(word):
            redirected = word in ("<", ">", ">>")
            if not redirected and command:
                yield command
                command = []
        elif not redirected:
            command.append(word)
        else:
            redirected = False


def ours(line: str) -> list[list[str]]:
    """The arguments of each zombiescope in a line."""
    found = []
    for command in simple(line):
        while command and (command[0] in _PREFIXES or re.match(r"[A-Z_]+=", command[0])):
            command = command[1:]
        if command and command[0].rpartition("/")[2] == "zombiescope":
            found.append(command[1:])
    return found


def programs(line: str) -> list[str]:
    """The first word of each command."""
    return [command[0] for command in simple(line) if command[0] not in ("{", "}")]


def parse(arguments: list[str]) -> None:
    """As the real command line reads them; raises what it would report. Nothing is run."""
    command = typer.main.get_command(application())
    context = command.make_context("zombiescope", list(arguments))
    while hasattr(command, "resolve_command"):
        rest = [*getattr(context, "_protected_args", ()), *context.args]
        name, command, rest = command.resolve_command(context, rest)
        assert command is not None
        context = command.make_context(name, rest, parent=context)


# --- where they stand ------------------------------------------------------------------------------------------------


def of_help() -> dict[str, str]:
    """Command and line -> line, from the examples of every command's help."""
    return {f"{path}: {line}": line for path, text in _epilogs() for line in _shell_lines(text)}


def _epilogs() -> Iterator[tuple[str, str]]:
    commands = [("", typer.main.get_command(application()))]
    while commands:
        path, command = commands.pop()
        yield path, getattr(command, "epilog", None) or ""
        commands += [(f"{path} {name}".strip(), each) for name, each in getattr(command, "commands", {}).items()]


def _shell_lines(text: str) -> list[str]:
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


def of_documents() -> dict[str, str]:
    """File and line -> line, from the code blocks of README.md and docs, indented or fenced as sh."""
    found = {}
    for file in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))):
        fenced = False
        for number, line in enumerate(file.read_text().splitlines(), 1):
            fenced = line == "```sh" if line.startswith("```") else fenced
            text = _SHOWN.fullmatch(f"    {line}" if fenced else line)
            if text:
                found[f"{file.relative_to(ROOT)}:{number}"] = text[1]
    return found


def of_source() -> dict[str, str]:
    """File, line and text -> what a message asks for: in quotes, after a colon, or all of it. What is put in is "x"."""
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for number, text in _texts(ast.parse(file.read_text())):
            for line in _QUOTED.findall(text) or _BARE.findall(text):
                found[f"{file.relative_to(SOURCE)}:{number}: {line}"] = line
    return found


def _texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """String literals but docstrings; parts of f-strings together."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            skipped.update(id(part) for part in node.values)
            parts = [str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values]
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value
