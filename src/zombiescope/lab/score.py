"""The result of all scenarios: the numbers and the table; the page is score_page.py."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from zombiescope.lab.scenario import HERE

Document = dict[str, Any]
QUIET = "no warning"
"""What is to be said of a healthy load."""


def score(results: Sequence[Document]) -> Document:
    """Of the scenarios that ran."""
    ran = [one for one in results if one["skipped"] is None]
    faults = [one for one in ran if one["kind"] == "fault"]
    healthy = [one for one in ran if one["kind"] != "fault"]
    times = [one["onset_to_named_s"] for one in faults if one["onset_to_named_s"] is not None]
    return {
        "scenarios": len(faults),
        "top1": sum(one["top1"] for one in faults),
        "culprit": sum(one["culprit"] for one in faults),
        "false_alarms": sum(len(one["false_alarms"]) for one in healthy),
        "healthy_s": round(sum(one["seconds"] for one in healthy if one["kind"] == "healthy"), 1),
        "named_live": len(times),
        "onset_to_named_median_s": round(statistics.median(times), 1) if times else None,
        "skipped": len(results) - len(ran),
        "fixes": len(fixes := [one["fix"] for one in ran if one.get("fix")]),
        "fixes_verified": sum(one["verified"] is True for one in fixes),
    }


def sentence(total: Document) -> str:
    median = total["onset_to_named_median_s"]
    return (
        f"first pattern right in {total['top1']} of {total['scenarios']}, culprit named in {total['culprit']}; "
        + ("" if median is None else f"named after {median} s at the median; ")
        + f"false alarms (warnings included): {total['false_alarms']} in {total['healthy_s'] / 60:.0f} minutes of "
        "healthy load"
        + (f"; repaired by `fix` and verified: {total['fixes_verified']} of {total['fixes']}" if total["fixes"] else "")
    )


def row_name(one: Document) -> str:
    return one["scenario"] if one["where"] == HERE else f"{one['scenario']} (node)"


def rows(results: Sequence[Document]) -> Iterator[tuple[str, ...]]:
    for one in results:
        name = row_name(one)
        if one["skipped"] is not None:
            yield name, one["expected"]["pattern"] or "healthy", "-", one["skipped"], "", "not run"
        elif one["kind"] != "fault":
            yield name, QUIET, _alarms(one["false_alarms"]), "", "", "right" if one["pass"] else "wrong"
        else:
            named = one["onset_to_named_s"]
            yield (
                name, one["expected"]["pattern"], one["found"]["pattern"] or "nothing",
                one["found"]["culprit"] or "-", "-" if named is None else f"{named} s",
                "right" if one["pass"] else "wrong",
            )  # fmt: skip


def _alarms(rang: Sequence[Document]) -> str:
    counted = Counter(one["severity"] for one in rang)
    return ", ".join(f"{count} {severity}" for severity, count in sorted(counted.items())) or QUIET
