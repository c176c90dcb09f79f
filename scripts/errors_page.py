#!/usr/bin/env python3
"""docs/errors.md, made from the code: every error that a person can meet, with what fixes it.

An error is a `raise` of a class that derives from UserError (zombiescope/_errors.py), or of typer.BadParameter, which
the command line prints as wrong usage. What is put into a text where it is raised stands as NAME. Run, it writes the
page; a test compares that with the code.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "zombiescope"
PAGE = ROOT / "docs" / "errors.md"

HEAD = """\
# Errors, and what fixes them

Every error is one line on stderr: what failed, on what, and behind the semicolon what helps. The exit code is 1 where
something could not be done, 2 where the command line was not understood (the line then ends with the command that shows
its help). There is never a traceback; `ZOMBIESCOPE_DEBUG=1` shows where an error comes from, for a report.

Words in capitals stand for what is put in: a path, a name, a number; look for the words around them. Where the second
column is empty, the message itself says what to write instead, or passes on what somebody else answered; the line above
the table says what helps then. This page is made from the code by `scripts/errors_page.py`.
"""
ROOMS = {
    "cli": "The command line",
    "questions": "Times, windows and filters",
    "store": "Recordings",
    "recorder": "Recording",
    "imports": "Importing",
    "query/exports": "Exporting and pushing",
    "store/shipping": "Shipping",
    "documents": "Views and diagnosis",
    "diagnosis": "Views and diagnosis",
    "query": "Views and diagnosis",
    "web": "The page",
    "audit": "Audit",
    "fix": "Fixing",
    "model/plans": "Fixing",
    "fleet": "Fleets",
    "agent": "The agent",
    "node/cluster": "Kubernetes",
    "node/ray": "Ray",
    "lab": "The laboratory",
    "symbols": "Symbols",
    "node/systemd": "systemd",
    "node/containers": "Containers",
    "kernel": "The kernel",
    "notebook": "Python",
}
"""By folder; the longest that a file lies in counts."""
GENERAL = {
    "The command line": "the message says what to write; the line ends with the command whose --help has examples",
    "Importing": "the file is damaged or of another kind; [what can be imported](import.md) lists the kinds",
    "Exporting and pushing": "the other side refused it, in its own words; its log says more",
    "Audit": "the file that it names is yours; [the catalogue](catalogue.md) shows an entry that is right",
    "Fixing": "nothing more was changed; the node is not as the plan had it: make the plan anew with "
    "`zombiescope fix --incident ID`, and see what was done with `--undo`",
    "Kubernetes": "the API server refused it; [the chart](kubernetes.md) has the rights that are needed",
    "The laboratory": "`zombiescope lab clean` removes what it left behind; `zombiescope lab list` says what can run",
    "systemd": "`systemctl status UNIT` says what it waits for",
}
"""By heading: what helps where the error itself has no words for it."""
_USAGE = "BadParameter"
_CONSTANTS: dict[str, ast.expr] = {}
"""Texts that have a name, of all modules."""


class Error(NamedTuple):
    room: str
    what: str
    fix: str | None


def errors() -> list[Error]:
    """All of them, each once."""
    trees = {path: ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
    for tree in trees.values():
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper():
                _CONSTANTS[node.targets[0].id] = node.value
    kinds = _kinds(trees.values())
    found = {error: None for path, tree in trees.items() for error in _raised(path, tree, kinds)}
    return sorted(found, key=lambda error: (list(ROOMS).index(error.room), error.what.lower()))


def page() -> str:
    parts = [HEAD]
    headings = dict.fromkeys(ROOMS.values())
    every = errors()
    for heading in headings:
        rows = [error for error in every if ROOMS[error.room] == heading]
        if rows:
            general = f"Where the second column is empty: {GENERAL[heading]}.\n\n" if heading in GENERAL else ""
            parts.append(f"\n## {heading}\n\n{general}| error | fix |\n|---|---|\n")
            parts += [f"| {_cell(error.what)} | {_cell(error.fix or '')} |\n" for error in rows]
    return "".join(parts)


def _kinds(trees: object) -> set[str]:
    """Names of classes that derive from UserError, however far."""
    bases: dict[str, set[str]] = {}
    for tree in trees:  # type: ignore[attr-defined]
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
    known = {"UserError"}
    while more := {name for name, above in bases.items() if above & known} - known:
        known |= more
    return known | {_USAGE}


def _raised(path: Path, tree: ast.AST, kinds: set[str]) -> Iterator[Error]:
    folders = [str(folder) for folder in path.relative_to(SOURCE).parents]
    room = next((folder for folder in folders if folder in ROOMS), "")
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
            continue
        call = node.exc
        name = ast.unparse(call.func).rpartition(".")[2]
        if name not in kinds or not call.args or room not in ROOMS:
            continue
        what = _text(call.args[0])
        given = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "fix"), None)
        fix = None if given is None or name == _USAGE else _text(given)
        option = next((_text(k.value) for k in call.keywords if k.arg == "option"), None)
        if what is None:
            continue
        if option and option.islower():
            what = f"--{option}: {what}"
        if fix is None and ";" in what:
            what, _, fix = (part.strip() for part in what.partition(";"))
        yield Error(room, what, fix)


def _text(node: ast.expr) -> str | None:
    """The words of a literal; None where there are none to look for."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [str(one.value) if isinstance(one, ast.Constant) else _name(one) for one in node.values]
        text = "".join(parts)
        return text if re.search(r"[a-z]{3}", text) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        both = [_text(side) or "..." for side in (node.left, node.right)]
        return "".join(both)
    if isinstance(node, ast.IfExp):
        both = [text for side in (node.body, node.orelse) if (text := _text(side))]
        return " / ".join(both) or None
    if isinstance(node, ast.Name) and isinstance(constant := _CONSTANTS.get(node.id), ast.expr):
        return _text(constant)
    return None


def _name(part: ast.expr) -> str:
    """What stands for a value: the last word of what is put in."""
    assert isinstance(part, ast.FormattedValue)
    words = re.findall(
        r"[a-zA-Z_]\w*", re.sub(r"\[[^\]]*\]|\([^()]*\)|'[^']*'|\"[^\"]*\"", "", ast.unparse(part.value))
    )
    return (words[-1] if words else "it").strip("_").upper()


def _cell(text: str) -> str:
    for mark in ("\\", "|", "*", "<", "_", "`"):
        text = text.replace(mark, {"|": "\\|", "<": "&lt;", "`": "'"}.get(mark, f"\\{mark}"))
    return " ".join(text.split())


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE}\n")
