"""The reference pages of settings and event kinds are those of the code."""

from __future__ import annotations

import runpy
from pathlib import Path

from zombiescope.query.events import known_kinds as known

ROOT = Path(__file__).parents[2]
PAGES: dict[Path, str] = runpy.run_path(str(ROOT / "scripts" / "reference_pages.py"))["pages"]()


def test_the_pages_are_those_of_the_code() -> None:
    assert [path.name for path, text in PAGES.items() if path.read_text() != text] == [], "run make generated"


def test_every_kind_of_event_is_explained() -> None:
    page = (ROOT / "docs/events.md").read_text()
    assert [kind for kind in known() if f"| `{kind}` | " not in page] == []
    assert "|  |" not in page
