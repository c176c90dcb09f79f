"""The terminal pictures of the docs show what the commands print today."""

from __future__ import annotations

import html
import re
import runpy
from pathlib import Path

import pytest

PICTURES = Path(__file__).parents[2] / "docs/pictures"


def words(svg: str) -> list[str]:
    """The text of the picture, without the program's path, which depends on how it was started."""
    text = " ".join(html.unescape(part) for part in re.findall(r"<text[^>]*>([^<]*)</text>", svg))
    return re.sub(r"\S*zombiescope fix", "zombiescope fix", text.replace("\xa0", " ")).split()


@pytest.mark.parametrize("name", ["demo", "top"])
def test_a_picture_is_the_output_of_its_command(name: str) -> None:
    drawn = runpy.run_path(str(PICTURES / f"{name}.py"))["svg"]()
    assert words((PICTURES / f"{name}.svg").read_text()) == words(drawn), "run make pictures"
