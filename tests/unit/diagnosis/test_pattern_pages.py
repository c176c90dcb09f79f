"""The pages of the patterns are what their files say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from zombiescope.diagnosis import pattern_pages, patterns
from zombiescope.diagnosis.pattern import FALLBACK, Pattern
from zombiescope.lab.scenario import every

DOCS = Path(__file__).parents[3] / "docs" / "patterns"


@pytest.mark.parametrize("pattern", patterns.every(), ids=lambda pattern: pattern.id)
def test_the_page_is_up_to_date(pattern: Pattern) -> None:
    written = (DOCS / f"{pattern.id}.md").read_text()
    assert written == pattern_pages.page(pattern), "run: python -m zombiescope.diagnosis.patterns"


def test_there_are_no_other_pages() -> None:
    assert {path.stem for path in DOCS.glob("*.md")} == {pattern.id for pattern in patterns.every()} | {
        "index",
        "thresholds",
    }
    assert (DOCS / "index.md").read_text() == pattern_pages.index(patterns.every())


@pytest.mark.parametrize("pattern", patterns.every(), ids=lambda pattern: pattern.id)
def test_a_file_is_named_after_its_pattern_and_says_everything(pattern: Pattern) -> None:
    assert pattern.examine.__module__.rpartition(".")[2].replace("_", "-") == pattern.id
    for text in (pattern.title, pattern.looks_like, pattern.confirmed_by, pattern.refuted_by, pattern.remedy):
        assert text.strip()
    assert pattern.reason.isidentifier()
    assert set(pattern.annotations()) == {"summary", "description", "page"}


RELEASE = re.compile(r"(?:^|; )(\d+\.\d+)(, emulated)?: ")


def happened() -> dict[str, set[str]]:
    """Pattern -> kernels on which a scenario made it happen, as the scenario's file says."""
    found = {
        "storage-hang": {"6.1 (emulated)"},  # tests/node/test_nfs.py
        "zombie-memcg": {"4.19 (emulated)"},  # tests/node/test_old_kernel.py
        "trainer-starved": {"6.18"},  # tests/gpu, and its recording in tests/fixtures
    }
    for scenario in every():
        seen = {
            f"{release} (emulated)" if emulated else release for release, emulated in RELEASE.findall(scenario.frames)
        }
        found.setdefault(str(scenario.truth.pattern), set()).update(seen)
    return found


@pytest.mark.parametrize("pattern", patterns.every(), ids=lambda pattern: pattern.id)
def test_it_was_seen_where_it_says_and_nowhere_else(pattern: Pattern) -> None:
    assert bool(pattern.seen_on) == (pattern.proof != "literature")
    kernels = [one.partition(" ")[0] for one in pattern.seen_on]
    assert kernels == sorted(set(kernels), key=lambda one: [-int(part) for part in one.split(".")])
    if pattern.id != FALLBACK:  # it happens wherever something has no name
        assert set(pattern.seen_on) == happened().get(pattern.id, set())
    said = pattern_pages.page(pattern)
    if pattern.id != FALLBACK:
        assert f"Seen on: {', '.join(pattern.seen_on) or 'no kernel yet'}." in said
