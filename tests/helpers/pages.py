"""Commands of a page as a newcomer types them, and what the page says they print.

A block of ```sh is run; a block of ```text behind it is what is seen. A comment before the block says what a person
would know: `<!-- newcomer: root -->` (it needs root), `<!-- newcomer: until TEXT -->` (it runs until Ctrl-C; TEXT shows
that it is up), `<!-- newcomer: skip WHY -->`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"(?:^<!-- newcomer: (?P<hint>[^>]*?) -->\n)?^```sh\n(?P<commands>.*?)^```\n(?:\n```text\n(?P<seen>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
_NUMBER = re.compile(r"\d[\d,.:]*")
_ANY = "…"
_WITH_TEXT = ("until", "skip")


@dataclass(frozen=True)
class Step:
    commands: str
    seen: tuple[str, ...] = ()
    root: bool = False
    until: str = ""
    """It goes on until it is interrupted; this shows that it is up."""
    skipped: str = ""


def steps(page: Path) -> list[Step]:
    return [_step(found) for found in _BLOCK.finditer(page.read_text())]


def _step(found: re.Match[str]) -> Step:
    hints = [part.strip() for part in (found["hint"] or "").split(",")]
    said = {
        word: next((one.partition(" ")[2] for one in hints if one.split(" ")[0] == word), "") for word in _WITH_TEXT
    }
    lines = tuple(line for line in (found["seen"] or "").splitlines() if line.strip())
    return Step(found["commands"], lines, "root" in hints, said["until"], said["skip"])


def missing(step: Step, printed: str) -> list[str]:
    """Lines of the page that were not printed: numbers and widths may be others, and … stands for anything."""
    shapes = [_shape(line) for line in printed.splitlines()]
    return [line for line in step.seen if not any(_matches(line, shape) for shape in shapes)]


def _matches(line: str, shape: str) -> bool:
    parts = [re.escape(_shape(part)) for part in line.split(_ANY)]
    return re.search(".*".join(parts), shape) is not None


def _shape(line: str) -> str:
    return _NUMBER.sub("#", " ".join(line.split()))
