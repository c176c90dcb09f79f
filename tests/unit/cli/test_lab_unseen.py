"""The patterns that no test could see: listed on the page, from their own files."""

from __future__ import annotations

from pathlib import Path

from zombiescope.cli.lab import unseen
from zombiescope.diagnosis import patterns
from zombiescope.lab.score_page import page_of

PAGE = Path(__file__).parents[3] / "docs" / "data" / "lab-runs.md"


def test_the_published_list_is_made_of_the_patterns() -> None:
    page = PAGE.read_text()
    assert unseen.TITLE in page
    assert unseen.into(page) == page, "run: python -m zombiescope.cli.lab.unseen docs/data/lab-runs.md"


def test_it_has_those_that_were_not_seen_and_no_others() -> None:
    listed = {row[0].partition("]")[0].lstrip("[") for row in unseen.rows()}
    assert listed == {one.id for one in patterns.every() if not one.seen_on}
    assert {"gpu-idle", "gpu-clocks-locked"} <= listed
    assert "workers-stopped" not in listed


def test_a_new_page_has_it_and_its_scenarios_last() -> None:
    page = unseen.into(page_of(()))
    assert page.index(unseen.TITLE) < page.index("## The scenarios")
    assert unseen.into(page) == page
