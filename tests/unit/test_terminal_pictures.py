"""docs/pictures/demo.svg shows what `zombiescope demo` prints today."""

from __future__ import annotations

import html
import re
import runpy
from pathlib import Path

PICTURES = Path(__file__).parents[2] / "docs/pictures"


def words(svg: str) -> list[str]:
    """The text of the picture, without the program's path, which depends on how it was started."""
    text = " ".join(html.unescape(part) for part in re.findall(r"<text[^>]*>([^<]*)</text>", svg))
    return re.sub(r"\S*zombiescope fix", "zombiescope fix", text.replace("\xa0", " ")).split()


def test_the_picture_of_the_demo_is_its_output() -> None:
    drawn = runpy.run_path(str(PICTURES / "demo.py"))["svg"]()
    assert words((PICTURES / "demo.svg").read_text()) == words(drawn), "run make pictures"
