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

Every error is one line on stderr: the problem, the detail, and after a semicolon what helps. The exit code is 1 if something could not
be done, and 2 if the command line was wrong (the line then ends with the command that shows the help). A traceback instead of one line is a
bug; please report it with the output of `ZOMBIESCOPE_DEBUG=1`.

Words in capitals are placeholders: PATH, NAME, LIST, N for a number, VALUE for what you typed, REASON for what the system answered. Search for
the words around them. If the second column is empty, see the line above the table. Generated from the code by `scripts/errors_page.py`.
"""
PLACEHOLDERS = {
    "JOIN": "LIST", "TEXT": "VALUE", "WORD": "VALUE", "IT": "VALUE", "STRERROR": "REASON", "ERROR": "REASON", "WHY": "REASON",
    "SAID": "REASON", "LAST_WORDS": "REASON", "LAST_LINES": "REASON", "LEN": "N", "NUMBER": "N", "MOST": "N", "SIZE": "N", "TAKEN": "N",
    "FREE": "N", "CPUS": "N", "MOST_CORES": "N", "MOST_BYTES": "N", "MAX_NODES": "N", "RETURNCODE": "N", "CODE": "N", "SHOWN": "ADDRESS",
    "PLACE": "PATH", "PLACES": "PATHS", "WHERE": "PATH", "DIRECTORY": "PATH", "FOLDER": "PATH", "OUTPUT": "PATH", "FILENAME": "PATH",
    "OUT_PATH": "PATH", "URL_FILE": "PATH", "TOKEN_FILE": "PATH", "NODE_DIR": "PATH", "COMMAND_LINE": "COMMAND", "ARGUMENTS": "COMMAND",
    "WANTED": "NAME", "UNKNOWN": "LABEL", "HELD": "WINDOW", "HEADING": "WINDOW", "BRIEF": "NAME", "WHAT": "SUBJECT", "OWN": "NAME",
    "SOURCECOLONTARGET": "SOURCE:TARGET", "HAS": "LABELS", "HOW": "PROBLEM", "FOUND": "N", "THEIRS": "VERSION", "MINE": "VERSION",
    "IDENTITY": "NAME", "WHATMORE": "DETAIL", "OTHER": "NAME", "STRIP": "REASON", "WORDS": "VALUE", "FORGOTTEN": "NAME",
    "EXCLUDED": "NAME", "NEW": "NAME", "DICT": "VALUE", "FORM": "FORMAT", "SUITE": "NAME", "PARTITION": "NAME", "BESIDE": "NAME",
}  # fmt: skip
"""Name of a variable, in capitals -> what a reader understands."""
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
    "web": "The web UI",
    "audit": "Audit",
    "fix": "Fixing",
    "model/plans": "Fixing",
    "fleet": "Fleets",
    "agent": "The agent",
    "node/cluster": "Kubernetes",
    "node/ray": "Ray",
    "lab": "The lab",
    "symbols": "Symbols",
    "node/systemd": "systemd",
    "node/containers": "Containers",
    "kernel": "The kernel",
    "notebook": "Python",
}
"""By folder; the longest that a file lies in counts."""
GENERAL = {
    "The command line": "the message says what to write; the command's --help has examples",
    "Importing": "the file is damaged or of another kind; [what can be imported](import.md) lists the kinds",
    "Exporting and pushing": "the peer refused it; its log has the details",
    "Audit": "correct the file that the message names; [the catalogue](catalogue.md) has a valid entry",
    "Fixing": "nothing more was changed, because the node is no longer as it was planned for: plan again with "
    "`zombiescope fix --incident ID`; `--undo` shows what was done",
    "Kubernetes": "the API server refused it; [the chart](kubernetes.md#rbac) grants the rights it needs",
    "The lab": "`zombiescope lab clean` cleans up; `zombiescope lab list` shows what can run",
    "systemd": "`systemctl status UNIT` shows what it waits for",
}
"""By heading: what helps if the error itself does not say."""
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
    name = (words[-1] if words else "it").strip("_").upper()
    return "N" if name.endswith("_S") else PLACEHOLDERS.get(name, name)


def _cell(text: str) -> str:
    for mark in ("\\", "|", "*", "<", "_", "`"):
        text = text.replace(mark, {"|": "\\|", "<": "&lt;", "`": "'"}.get(mark, f"\\{mark}"))
    return " ".join(text.split())


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE}\n")
