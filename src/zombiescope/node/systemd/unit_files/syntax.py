"""The syntax of unit files and of system.conf: sections, assignments, comments and continued lines.

As systemd reads them: a line that ends in a backslash goes on in the next, comment lines in between are left
out; a line that is not UTF-8, or has no =, is passed over. Each assignment knows its file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n\r|[\n\r\0]")
_BLANKS = b" \t\n\r"


@dataclass(frozen=True, slots=True)
class Assignment:
    section: str
    key: str
    value: str
    file: str
    line: int


def parse(data: bytes, file: str) -> list[Assignment]:
    """Every assignment, in order; those before the first section have the section ""."""
    found = []
    section = ""
    for number, line in _logical_lines(data):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            continue
        if text.startswith("["):
            section = text[1:-1] if text.endswith("]") else ""
            continue
        key, equals, value = text.partition("=")
        if equals and key.strip():
            found.append(Assignment(section, key.strip(), value.strip(), file, number))
    return found


def _logical_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(number of its first line, stripped text)"""
    pieces: list[bytes] = []
    begun_at = 0
    for number, raw in enumerate(_LINE_END.split(data.removeprefix(b"\xef\xbb\xbf")), 1):
        line = raw.lstrip(_BLANKS)
        if line[:1] in (b"#", b";"):
            continue
        begun_at = begun_at if pieces else number
        if _ends_escaped(line):
            pieces.append(line[:-1] + b" ")
            continue
        pieces.append(line)
        if text := b"".join(pieces).strip(_BLANKS):
            yield begun_at, text
        pieces.clear()
    if text := b"".join(pieces).strip(_BLANKS):
        yield begun_at, text


def _ends_escaped(line: bytes) -> bool:
    backslashes = len(line) - len(line.rstrip(b"\\"))
    return backslashes % 2 == 1


def words(value: str) -> list[str]:
    """A list as systemd splits it: at blanks, with quotes and C escapes left as they are but for the quotes."""
    found: list[str] = []
    word, quote, begun = "", "", False
    characters = iter(value)
    for character in characters:
        if character == "\\":
            word += character + next(characters, "")
            begun = True
        elif quote:
            quote, word = ("", word) if character == quote else (quote, word + character)
        elif character in "\"'":
            quote, begun = character, True
        elif character.isspace():
            if begun or word:
                found.append(word)
            word, begun = "", False
        else:
            word += character
    return [*found, word] if begun or word else found
