"""Rounds of `lab score` -> docs/data/calibration.json, a table in docs/data/lab-runs.md, and the formula's counts.

    python -m zombiescope.cli.lab.calibration docs/data score.json unseen-faults.json ...

Without rounds it regenerates the table from docs/data/calibration.json, e.g. after a change of the
formula. It prints the counts as they belong in diagnosis/calibration.py; a test fails until they are there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from zombiescope.diagnosis import patterns, ranking
from zombiescope.diagnosis.calibration import BANDS, Band
from zombiescope.lab import calibration

Document = dict[str, Any]

HEADING = "## Confidence"
NEXT = "\n## "


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m zombiescope.cli.lab.calibration",
        description="Writes how often causes of each confidence were right into the docs.",
    )
    parser.add_argument("docs", metavar="DOCS", type=Path)
    parser.add_argument("rounds", metavar="ROUND", nargs="*", type=Path, help="what `lab score` wrote")
    given = parser.parse_args(arguments)
    docs: Path = given.docs
    if given.rounds:
        rows = [row for file in given.rounds for row in calibration.rows_of(json.loads(file.read_text()))]
        (docs / "calibration.json").write_text(_written(rows))
    page = docs / "lab-runs.md"
    page.write_text(with_section(page.read_text(), published(docs)))
    for band in bands(kept(docs)):
        print(f"    {band!r},")  # noqa: T201  to be pasted


def _written(rows: Sequence[Document]) -> str:
    """One run a line; without the confidence, which is made of the strength."""
    lines = [json.dumps({key: value for key, value in row.items() if key != "confidence"}) for row in rows]
    return '{"runs": [\n' + ",\n".join(lines) + "\n]}\n"


def kept(docs: Path) -> list[Document]:
    """With the confidence that such a cause would be named with now."""
    known = {pattern.id: pattern for pattern in patterns.every()}
    rows: list[Document] = json.loads((docs / "calibration.json").read_text())["runs"]
    return [{**row, "confidence": ranking.confidence(known[row["pattern"]], row["strength"])} for row in rows]


def bands(rows: Sequence[Document]) -> tuple[Band, ...]:
    """How often causes of each band of strengths were right."""
    ends = [*(band.least for band in BANDS[1:]), 2.0]
    found = []
    for least, end in zip((band.least for band in BANDS), ends, strict=True):
        mine = [row["right"] for row in rows if least < row["strength"] <= end]
        found.append(Band(least, sum(mine), len(mine)))
    return tuple(found)


def published(docs: Path) -> str:
    return calibration.section(kept(docs))


def with_section(page: str, section: str) -> str:
    """The page with this section in place of the one it had, or before what describes the scenarios."""
    head, had, tail = page.partition(HEADING)
    if not had:
        head, had, tail = page.partition("## The scenarios")
        return f"{head}{section}\n{had}{tail}"
    _, following, rest = tail.partition(NEXT)
    return head + section + following + rest


if __name__ == "__main__":
    main()
