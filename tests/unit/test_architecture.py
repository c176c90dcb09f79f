"""docs/architecture.md shows the house as it is: its packages are the folders, and its walks name files that
exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.test_layers import ROOMS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "zombiescope"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
IMPORTS = PAGE.partition("| package | imports |")[2].partition("\n\n")[0]
LONGEST = 24
"""Files of a walk; the first walk was about thirty once."""

_STEP = re.compile(r"^\| `([\w./-]+\.(?:py|pxi|tsx?))` \|", re.M)
WALKS = {part.partition("\n")[0]: _STEP.findall(part) for part in PAGE.split("\n## ")[1:]}


def test_there_are_three_walks() -> None:
    assert sum(bool(files) for files in WALKS.values()) == 3


def test_every_room_is_on_the_page() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert {room for room in rooms if f"`{room}/`" not in PAGE} == set()


def test_the_page_says_who_imports_whom() -> None:
    said = {
        row[0]: set(re.findall(r"`(\w+)`", row[1])) for row in re.findall(r"^\| `(\w+)/` \| (.*) \|$", IMPORTS, re.M)
    }
    rooms = {room: {other for other in allowed if other in ROOMS} - {room} for room, allowed in ROOMS.items()}
    assert said == rooms


@pytest.mark.parametrize("walk", [walk for walk, files in WALKS.items() if files])
def test_a_walk_names_files_that_exist(walk: str) -> None:
    files = WALKS[walk]
    assert [name for name in files if not (SOURCE / name).exists() and not (ROOT / name).exists()] == []
    assert len(files) <= LONGEST
