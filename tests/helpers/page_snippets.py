"""Code that a page of docs shows, by the heading that it stands below, as a reader pastes it."""

from __future__ import annotations

import textwrap
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def below(page: str, heading: str) -> str:
    """All indented blocks below a heading of the second level, as one program."""
    section = (DOCS / page).read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    code = "\n".join(line for line in section.splitlines() if line.startswith("    ") or not line.strip())
    assert code.strip(), f"{page} has no code below {heading}"
    return textwrap.dedent(code)
