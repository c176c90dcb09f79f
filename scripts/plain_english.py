#!/usr/bin/env python3
"""Find words that docs/contributing/style.md rules out, in everything that a person reads.

Checked: pages, deployment files and the web page's sources as text; strings in src/ that contain a space, and the
docstrings of commands, which are their help. `make lint` runs it.

    scripts/plain_english.py [--count] [PATH...]

Without PATH, all files.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
GUIDE = ROOT / "docs" / "contributing" / "style.md"

TEXTS = (
    "*.md", "docs/**/*.md", "Makefile", "mkdocs.yml", "ui/src/**/*.ts", "ui/src/**/*.tsx", "ui/index.html",
    "deploy/**/*.yaml", "deploy/**/*.txt", "deploy/**/*.md", "deploy/**/*.json", "packaging/*.service", "packaging/*.md",
)  # fmt: skip
SOURCES = ("src/zombiescope/**/*.py",)
_ROW = re.compile(r"^\| (`[^|]+) \| ([^|]+) \|([^|]*)\|$", re.MULTILINE)
_CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*$|``[^`]*``|`[^`\n]*`|<!--.*?-->|^ {4,}\S[^\n]*$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"``[^`]*``|`[^`\n]*`")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Found(NamedTuple):
    path: Path
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: '{self.word}': write {self.instead.replace('*', '')}"


class Words:
    """The table of the guide."""

    def __init__(self, guide: str) -> None:
        self.instead: dict[str, str] = {}
        exceptions: list[str] = []
        for avoid, instead, allowed in _ROW.findall(guide):
            self.instead |= dict.fromkeys(re.findall(r"`([^`]+)`", avoid), instead.strip())
            exceptions += re.findall(r"`([^`]+)`", allowed)
        if not self.instead:
            raise SystemExit(f"{GUIDE}: no table of words")
        self._allowed = _any(exceptions)
        self._avoided = _any(self.instead)

    def found(self, text: str) -> Iterator[tuple[int, str]]:
        """Offset and word."""
        allowed = [range(*match.span()) for match in self._allowed.finditer(text)]
        for match in self._avoided.finditer(text):
            if not any(match.start() in each for each in allowed):
                yield match.start(), " ".join(match.group().lower().split())


def _any(phrases: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(phrases, key=len, reverse=True)
    ways = "|".join(r"\s+".join(map(re.escape, phrase.split())) for phrase in longest_first)
    return re.compile(rf"(?<![\w-])(?:{ways})(?![\w-])", re.IGNORECASE)


def in_text(text: str, *, markdown: bool) -> str:
    """What is prose in it, with every line where it was."""
    return _CODE.sub(_blank, text) if markdown else text


def _blank(code: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", code.group())


def strings(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of every string that may reach a person: with a space in it, and no docstring but a command's."""
    tree = ast.parse(source)
    internal = {id(each) for node in ast.walk(tree) for each in _docstrings(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in internal:
            if " " in node.value.strip():
                yield node.lineno, _SPAN.sub(_blank, node.value)


def _docstrings(node: ast.AST) -> Iterator[ast.Constant]:
    """Of a module, class, function or attribute; a function with options is a command, and its docstring is its help."""
    if not isinstance(node, _DOCUMENTED):
        return
    if isinstance(node, ast.FunctionDef) and _is_command(node):
        return
    for each in node.body:
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
            yield each.value


def _is_command(function: ast.FunctionDef) -> bool:
    decorated = any(
        "command(" in ast.unparse(each) or "callback(" in ast.unparse(each) for each in function.decorator_list
    )
    return function.name == "command" or decorated


def check(paths: Iterable[Path], words: Words) -> Iterator[Found]:
    for path in paths:
        text = path.read_text()
        if path.suffix == ".py":
            pieces = list(strings(text))
        else:
            markdown = path.suffix == ".md"
            own = _ROW.sub("", text) if path == GUIDE else text
            pieces = [(1, in_text(own, markdown=markdown))]
        for line, piece in pieces:
            for offset, word in words.found(piece):
                yield Found(path, line + piece.count("\n", 0, offset), word, words.instead[word])


def files() -> list[Path]:
    return sorted({path for pattern in (*TEXTS, *SOURCES) for path in ROOT.glob(pattern) if path.is_file()})


def main() -> int:
    parser = argparse.ArgumentParser(description="Find words that docs/contributing/style.md rules out.")
    parser.add_argument("--count", action="store_true", help="Count them per file.")
    parser.add_argument("paths", nargs="*", type=Path)
    arguments = parser.parse_args()
    words = Words(GUIDE.read_text())
    paths = [path.resolve() for path in arguments.paths] or files()
    if arguments.count:
        for path in paths:
            if count := sum(1 for _ in check([path], words)):
                print(f"{count:5} {path.relative_to(ROOT)}")
        return 0
    found = list(check(paths, words))
    for each in found:
        print(each)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
