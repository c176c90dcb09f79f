"""A confidence is what was counted: it rises with evidence, is honest about few runs, and can be made again."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

from zombiescope.cli.lab import calibration as published
from zombiescope.diagnosis import calibration, patterns, ranking
from zombiescope.diagnosis.calibration import Band, calibrated
from zombiescope.diagnosis.incident import Actor
from zombiescope.diagnosis.pattern import FALLBACK, Evidence, Measurement, Pattern
from zombiescope.diagnosis.thresholds import CALIBRATION_STRONGEST, LITERATURE_MOST
from zombiescope.lab.calibration import rows_of, table

DOCS = Path(__file__).parents[3] / "docs" / "data"
PATTERNS = {pattern.id: pattern for pattern in patterns.every()}
STORM, LITERATURE = PATTERNS["fork-storm"], PATTERNS["audit-flood"]


def said(pattern: Pattern, share: float, flags: tuple[bool, ...]) -> float:
    """`flags`: confirmed, culprit named, everything measured."""
    confirmed, culprit, complete = flags
    counted = Measurement("it was counted", 1, None, "vmstat", "confirms" if confirmed else "nothing")
    needed = Measurement("it was needed", 1 if complete else None, None, "vmstat", "nothing")
    finding = Evidence((counted, needed), Actor(comm="x") if culprit else None)
    return ranking.confidence(pattern, ranking._strength(pattern, share, finding, confirmed))


@pytest.mark.parametrize("pattern", [STORM, LITERATURE, PATTERNS["cfs-throttle"]], ids=lambda one: str(one.id))
def test_more_evidence_never_makes_a_cause_less_likely(pattern: Pattern) -> None:
    flags: tuple[bool, ...]
    for share in (0.2, 0.3, 0.45, 0.6, 1.0):
        for flags in product((False, True), repeat=3):
            less = said(pattern, share, flags)
            assert said(pattern, min(1.0, share + 0.1), flags) >= less
            for at in range(3):
                assert said(pattern, share, (*flags[:at], True, *flags[at + 1 :])) >= less


@pytest.mark.parametrize(
    "pattern", [one for one in PATTERNS.values() if one.id != FALLBACK], ids=lambda one: str(one.id)
)
def test_what_is_measured_stands_above_what_is_not_and_literature_below_its_limit(pattern: Pattern) -> None:
    for share, culprit, complete in product((0.2, 0.6, 1.0), (False, True), (False, True)):
        assert said(pattern, share, (False, culprit, complete)) <= 0.5
        sure = said(pattern, share, (True, culprit, complete))
        assert 0.5 < sure <= (0.6 if pattern.proof == "literature" else 1.0)


def test_the_line_rises_from_nothing_and_never_beyond_what_was_counted() -> None:
    values = [calibrated(step / 100) for step in range(101)]
    assert all(before <= after for before, after in pairwise(values))
    assert values[0] == 0.0
    assert values[-1] == calibration._points(calibration.BANDS)[-1][1] < 1.0


def test_a_band_that_was_right_less_often_than_a_weaker_one_is_pooled_with_it() -> None:
    points = calibration._points((Band(0.0, 20, 20), Band(0.5, 0, 20)))
    assert points[0][1] == points[1][1] == pytest.approx((20 + 10 * 0.25 + 10 * 0.725) / 60)


def test_few_runs_move_it_little_and_many_decide() -> None:
    def top(right: int, runs: int) -> float:
        return calibration._points((Band(0.5, right, runs),))[0][1]

    middle = (0.5 + CALIBRATION_STRONGEST) / 2
    assert top(0, 0) == pytest.approx(middle)
    assert middle < top(3, 3) < 0.85, "three of three is no certainty"
    assert top(0, 2) > 0.55
    assert top(190, 200) == pytest.approx(0.94, abs=0.01)


def test_the_counts_in_the_formula_are_those_of_the_runs_that_are_kept() -> None:
    assert published.bands(published.kept(DOCS)) == calibration.BANDS


def test_the_published_table_is_made_of_the_runs_that_are_kept() -> None:
    page = (DOCS / "lab-runs.md").read_text()
    assert published.with_section(page, published.published(DOCS)) == page


def test_what_was_said_is_close_to_what_was_true() -> None:
    """Of each step of the table with enough runs to tell. What stands at the most that may be said of what is only read
    about (record 0012) may have been true more often than it says, never less."""
    known = published.kept(DOCS)
    capped = [row for row in known if row["confidence"] == row["strength"] == LITERATURE_MOST]
    assert sum(row["right"] for row in capped) >= (LITERATURE_MOST - 0.15) * len(capped)
    rows = [row for row in known if row not in capped]
    for low, high in ((0.5, 0.7), (0.7, 0.9), (0.9, 1.01)):
        mine = [row for row in rows if low < row["confidence"] <= high]
        if len(mine) >= 10:
            assert sum(row["right"] for row in mine) / len(mine) == pytest.approx(
                sum(row["confidence"] for row in mine) / len(mine), abs=0.15
            )


def result(scenario: str, **more: Any) -> dict[str, Any]:
    found = {"pattern": "fork-storm", "strength": 0.9, "confidence": 0.93}
    return {"scenario": scenario, "kind": "fault", "skipped": None, "where": "here", "found": found,
            "pass": True} | more  # fmt: skip


def test_rows_are_runs_in_which_a_pattern_was_named() -> None:
    unknown = {"pattern": FALLBACK, "strength": 0.1, "confidence": 0.1}
    held = {"held": True, "beside": "alone", "cores": 2, "process": True, "pattern_is": "wrong", "stressor": "pipe"}
    document = {
        "results": [result("a"), result("b", **{"pass": False}), result("c", found=unknown),
                    result("d", skipped="no root"), result("e", kind="healthy")],
        "hold_out": [{**held, "pattern": "rt-hog", "strength": 0.6, "confidence": 0.7}, {**held, **unknown},
                     {**held, "held": False}],
    }  # fmt: skip
    rows = list(rows_of(document))
    assert [(row["run"], row["right"]) for row in rows] == [("a", True), ("b", False), ("pipe", False)]
    alarm = {"severity": "warning", "pattern": "rt-hog", "strength": 0.9, "confidence": 0.95}
    healthy = {"results": [result("h", kind="healthy", alarms=[alarm, {**alarm, **unknown}])]}
    assert [(row["run"], row["right"]) for row in rows_of(healthy)] == [("h", False)]
    wide = {"widths": {"results": [result("w", cores=96, background="healthy-web")]}}
    assert [(row["source"], row["cores"]) for row in rows_of(wide)] == [("lab runs, widened onto healthy-web", 96)]
    assert list(table(rows)) == [
        ("0.9 to 1.0", "0.93", "1 of 2", "b (fork-storm)"),
        ("0.7 to 0.8", "0.70", "0 of 1", "pipe (rt-hog)"),
    ]


def test_a_new_section_takes_the_place_of_the_old_one() -> None:
    page = "# A\n\nx\n\n## The scenarios\n\ny\n"
    once = published.with_section(page, "## Confidence: reported and right\n\none\n")
    assert once == "# A\n\nx\n\n## Confidence: reported and right\n\none\n\n## The scenarios\n\ny\n"
    again = published.with_section(once, "## Confidence: reported and right\n\ntwo\n")
    assert again == once.replace("one", "two")
