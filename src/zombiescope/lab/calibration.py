"""Said and true: of the causes that were named first with so much confidence, how many were right.

A row is one run in which a pattern was named: by a scenario of the laboratory, whatever the width, or by a stressor of
the hold-out. Right means the right pattern and the right one to blame; of a healthy load no warning is right. Where
nothing was named there is nothing to be sure of, so "not known" has no row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from zombiescope.lab.hold_out import UNKNOWN
from zombiescope.lab.scenario import HERE

Document = dict[str, Any]

STEPS = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Of confidence, as they are published."""


def rows_of(document: Document) -> Iterator[Document]:
    """Of what `lab score -o FILE` wrote: scenarios, those at other widths, healthy hours and the hold-out."""
    wide = document.get("widths")
    for one in (*document.get("results", ()), *(wide.get("results", ()) if isinstance(wide, dict) else ())):
        if one["kind"] == "fault" and one.get("skipped") is None and _named(one["found"]):
            yield _row(_source(one), one["scenario"], one["found"], one.get("cores"), bool(one["pass"]))
        for alarm in one.get("alarms") or one.get("false_alarms") or ():
            if one["kind"] != "fault" and _named(alarm):
                yield _row("healthy loads", one["scenario"], alarm, one.get("cores"), right=False)
    for one in document.get("hours", ()):
        # The same recorded seconds again and again are one run, however often it was said.
        for alarm in {found["pattern"]: found for found in one["alarms"] if _named(found)}.values():
            yield _row("healthy hours", one["scenario"], alarm, one["cores"], right=False)
    yield from document.get("runs", ())  # kept from an earlier round
    for one in document.get("hold_out", ()):
        if one["held"] and _named(one):
            right = bool(one["pattern_is"] == "right" and one["process"])
            yield _row(f"unseen faults, {one['beside']}", one["stressor"], one, one["cores"], right)


def _source(one: Document) -> str:
    if one.get("background"):
        return f"lab runs, widened onto {one['background']}"
    return "lab runs" if one.get("where", HERE) == HERE else "lab runs in a whole node"


def _named(found: Document) -> bool:
    return found.get("pattern") not in (None, UNKNOWN) and found.get("strength") is not None


def _row(source: str, run: str, found: Document, cores: int | None, right: bool) -> Document:
    said = {key: found[key] for key in ("pattern", "strength", "confidence")}
    return {"source": source, "run": run, "cores": cores, **said, "right": right}


def table(rows: Sequence[Document]) -> Iterator[tuple[str, str, str, str]]:
    """(said, right in, of those named wrongly which), the surest first; steps that nobody used are left out."""
    for low, high in reversed(list(pairwise(STEPS))):
        last = high == STEPS[-1]
        mine = [row for row in rows if low <= row["confidence"] and (row["confidence"] < high or last)]
        if mine:
            right = sum(row["right"] for row in mine)
            mean = sum(row["confidence"] for row in mine) / len(mine)
            wrong = [f"{row['run']} ({row['pattern']})" for row in mine if not row["right"]]
            yield f"{low:.1f} to {high:.1f}", f"{mean:.2f}", f"{right} of {len(mine)}", ", ".join(wrong) or "-"


def section(rows: Sequence[Document]) -> str:
    """In Markdown, with its heading."""
    sources: dict[str, int] = {}
    for row in rows:
        sources[row["source"]] = sources.get(row["source"], 0) + 1
    runs = "; ".join(f"{count} of {source}" for source, count in sources.items()) or "none"
    lines = [
        "| reported | mean | right in | wrong in |",
        "|---|---|---|---|",
        *(f"| {' | '.join(line)} |" for line in table(rows)),
    ]
    return (
        f"## Confidence: reported and right\n\nRuns in which a pattern was named first: {runs}. *Right* means the "
        "right pattern and the right culprit. *Unknown* claims nothing and is not counted. The formula was fitted to "
        "these runs (`diagnosis/calibration.py`), so the table shows how well one number fits all patterns, not how "
        "it does on other kinds of faults. [Unseen faults](unseen-faults.md) are listed separately.\n\n"
        + "\n".join(lines)
        + "\n"
    )
