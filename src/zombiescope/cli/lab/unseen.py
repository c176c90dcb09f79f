"""Patterns that were never seen on a real kernel: a section of docs/data/lab-runs.md, made of their own files."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from zombiescope.diagnosis import patterns
from zombiescope.diagnosis.incident import KNOWN
from zombiescope.diagnosis.thresholds import LITERATURE_MOST

TITLE = "## Patterns never tested on the real fault"
_SECTION = re.compile(rf"^{TITLE}$.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
HEAD = ("pattern", "how it is known", "from")


def rows() -> Iterator[tuple[str, ...]]:
    for one in patterns.every():
        if one.proof != "kernel":
            yield f"[{one.id}](../patterns/{one.id}.md)", KNOWN[one.proof], one.known_from or "-"


def section() -> str:
    """In Markdown, with its heading."""
    unseen = list(rows())
    what = (
        "No lab scenario and no test makes these happen on a real kernel, so the tables of this page do not cover "
        f"them: {len(unseen)} of {len(patterns.every())} patterns. Tests show that each one is named when its numbers "
        "are present and not otherwise; that a real node shows these numbers is known only from the source in the "
        f"last column. The confidence of such a cause is at most {LITERATURE_MOST}."
    )
    table = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}"]
    table += [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in unseen]
    return "\n\n".join([TITLE, what, "\n".join(table)]) + "\n"


def into(page: str) -> str:
    """A page of accuracy with this section in it, in place of the one that it had."""
    made = section()
    if _SECTION.search(page):
        return _SECTION.sub(lambda _: made + "\n", page).rstrip("\n") + "\n"
    before, title, after = page.partition("## The scenarios")
    return f"{before.rstrip()}\n\n{made}\n{title}{after}" if title else f"{page.rstrip()}\n\n{made}"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m zombiescope.cli.lab.unseen",
        description="Write the list of patterns never tested on the real fault.",
    )
    parser.add_argument("page", type=Path, help="docs/data/lab-runs.md")
    page: Path = parser.parse_args().page
    page.write_text(into(page.read_text()))


if __name__ == "__main__":
    main()
