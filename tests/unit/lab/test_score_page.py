"""docs/data/lab-runs.md: a round replaces its own rows; what is wrong or was not run is listed with the reason."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from zombiescope.lab.scenario import by_id, every
from zombiescope.lab.score_page import OPEN, into, page_of

DOCS = Path(__file__).parents[3] / "docs" / "data"
NODE = "lab node, Linux 6.1, cgroup v2"


def result(name: str, **more: Any) -> dict[str, Any]:
    scenario = by_id(name)
    found = {"pattern": scenario.truth.pattern, "culprit": scenario.truth.culprit}
    made = {"scenario": name, "kind": scenario.kind, "expected": scenario.truth.document(), "found": found,
            "live": found, "top1": True, "culprit": True, "pass": True, "onset_to_named_s": 5.0, "seconds": 60.0,
            "false_alarms": [], "skipped": None, "where": "here", "ran": "2026-11-15, Linux 6.18, 2 cores"}  # fmt: skip
    return made | more


WRONG = {"found": {"pattern": "unknown-kernel-hog", "culprit": None}, "pass": False, "onset_to_named_s": None}
ELSEWHERE = "## Somebody else's section\n\n| scenario | x |\n|---|---|\n| rt-hog | 1 |\n"


def lines_of_open(page: str) -> dict[str, str]:
    section = page.partition(OPEN)[2].partition("\n## ")[0]
    lines = [line[4:].split("**: ") for line in section.splitlines() if line.startswith("- **")]
    return dict(lines)


def test_a_round_replaces_its_own_rows_and_leaves_the_others_with_their_day() -> None:
    page = page_of([result("rt-hog"), result("zombie-unit", where=NODE, **WRONG), result("healthy-web")])
    page = page.replace(OPEN, f"{ELSEWHERE}\n{OPEN}")
    assert "**First pattern right in 1 of 2, pattern and culprit in 1; named live in 1, after 5.0 s" in page
    right = result("zombie-unit", where=NODE, ran="2026-11-18, Linux 6.1, 4 cores, emulated", onset_to_named_s=31.0)
    again = into(page, [right])
    assert "| rt-hog | rt-hog | rt-hog | fifo-loop | 5.0 s | right | 2026-11-15, Linux 6.18, 2 cores |" in again
    assert "| 31.0 s | right | 2026-11-18, Linux 6.1, 4 cores, emulated |" in again
    assert again.count("| zombie-unit (node) |") == 1
    assert "**First pattern right in 2 of 2, pattern and culprit in 2; named live in 2, after 18.0 s" in again
    assert ELSEWHERE in again
    assert into(again, []) == again, "a round of nothing changes nothing"


def test_what_is_wrong_not_live_or_not_run_is_listed_with_the_reason() -> None:
    slow = result("oom-loop", where=NODE, onset_to_named_s=None, live={"pattern": None, "culprit": None})
    page = page_of([result("rt-hog"), slow, result("zombie-unit", where=NODE, **WRONG),
                    result("global-reclaim", skipped="the node did not come up")])  # fmt: skip
    listed = lines_of_open(page)
    assert "rt-hog" not in listed
    assert listed["zombie-unit (node)"].startswith(
        "wrong: the answer was unknown-kernel-hog, no culprit; the truth is zomb"
    )
    assert "not live: live diagnosis reported nothing in the 60 s" in listed["oom-loop (node)"]
    assert listed["global-reclaim"] == "not run: the node did not come up"
    assert "| global-reclaim |" not in page, "what did not run has no row in the table"
    assert {one.id for one in every()} - set(listed) == {"rt-hog", "oom-loop", "zombie-unit"}


def test_a_reason_that_a_person_wrote_stays_until_its_row_is_run_again() -> None:
    page = page_of([result("zombie-unit", where=NODE, **WRONG)])
    line = next(line for line in page.splitlines() if line.startswith("- **zombie-unit (node)**"))
    page = page.replace(line, "- **zombie-unit (node)**: wrong, because the node was too slow")
    assert "wrong, because the node was too slow" in into(page, [result("rt-hog")])
    assert "too slow" not in into(page, [result("zombie-unit", where=NODE)])


def test_a_file_without_a_table_becomes_a_new_page() -> None:
    assert into("", [result("rt-hog")]) == page_of([result("rt-hog")])


def test_the_page_lists_all_that_its_table_does_not_show_as_right() -> None:
    """The published page, as the generator would write its list: nothing wrong is only in the table, and nothing is
    left out."""
    page = (DOCS / "lab-runs.md").read_text()
    assert lines_of_open(into(page, [])) == lines_of_open(page)


def test_the_figures_of_the_accuracy_page_are_those_of_the_data() -> None:
    """docs/accuracy.md is written by hand; each figure of its table is counted again from docs/data."""
    page = (DOCS.parent / "accuracy.md").read_text()
    runs = json.loads((DOCS / "unseen-faults.json").read_text())["hold_out"]
    quiet = [row for row in runs if row["held"] and row["beside"] == "nothing"]
    named = [row for row in quiet if row["pattern_is"] in ("right", "wrong")]
    loud = sum(row["reported"] and row["severity"] in ("warning", "critical") for row in quiet)
    for question, count, of in (
        ("right process", sum(row["process"] for row in quiet), len(quiet)),
        ("a pattern named", len(named), len(quiet)),
        ("of the named patterns, right", sum(row["pattern_is"] == "right" for row in named), len(named)),
        ("reported as warning or critical", loud, len(quiet)),
    ):
        row = next(line for line in page.splitlines() if question in line and line.startswith("|"))
        assert f"| {100 * count / of:.0f}% | {of} |" in row, question
    wrong = {row["stressor"] for row in runs if row["held"] and row["pattern_is"] == "wrong"}
    assert wrong <= set(re.findall(r"`([\w-]+)`", page.partition("## Known wrong answers")[2])), wrong

    lab = (DOCS / "lab-runs.md").read_text()
    faults = re.search(r"First pattern right in (\d+ of \d+)", lab)
    hours = re.search(r"(\d+) warnings in (\d+) simulated hours\*\*: (\d+) recordings, (\d+) s in all", lab)
    assert faults is not None
    assert hours is not None
    assert f"| {faults[1]} |" in page
    assert f"| {hours[1]} in {hours[3]} loads |" in page
    assert f"{hours[2]} simulated hours" in page
    assert f"{int(hours[4]) / 60:.1f} minutes recorded" in page

    node = (DOCS / "training-node.md").read_text()
    on_node = re.search(r"\*\*(\d+ of \d+) right with the right culprit, as they ran", node)
    assert on_node is not None
    assert f"| {on_node[1]} |" in page
