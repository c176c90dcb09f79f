"""The pages of the patterns are what their files say."""

from __future__ import annotations

from pathlib import Path

import pytest

from zombiescope.diagnosis import pattern_pages, patterns
from zombiescope.diagnosis.pattern import Pattern

DOCS = Path(__file__).parents[3] / "docs" / "patterns"


@pytest.mark.parametrize("pattern", patterns.every(), ids=lambda pattern: pattern.id)
def test_the_page_is_up_to_date(pattern: Pattern) -> None:
    written = (DOCS / f"{pattern.id}.md").read_text()
    assert written == pattern_pages.page(pattern), "run: python -m zombiescope.diagnosis.patterns"


def test_there_are_no_other_pages() -> None:
    assert {path.stem for path in DOCS.glob("*.md")} == {pattern.id for pattern in patterns.every()} | {"index"}
    assert (DOCS / "index.md").read_text() == pattern_pages.index(patterns.every())


@pytest.mark.parametrize("pattern", patterns.every(), ids=lambda pattern: pattern.id)
def test_a_file_is_named_after_its_pattern_and_says_everything(pattern: Pattern) -> None:
    assert pattern.examine.__module__.rpartition(".")[2].replace("_", "-") == pattern.id
    for text in (pattern.title, pattern.looks_like, pattern.confirmed_by, pattern.refuted_by, pattern.remedy):
        assert text.strip()
    assert pattern.reason.isidentifier()
    assert set(pattern.annotations()) == {"summary", "description", "page"}
