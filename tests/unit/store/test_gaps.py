"""Holes between what was written, where stretches lie one after another and where they lie within each other."""

from __future__ import annotations

import pytest

from zombiescope.store import columns, gaps, schema
from zombiescope.store.layout import Span

SECOND = 1_000_000


def span(start_s: float, end_s: float, run_us: int = 0) -> Span:
    start, end = round(start_s * SECOND), round(end_s * SECOND)
    return Span(start, end, run_us, "boot", start, end, start * 1000, end * 1000)


@pytest.mark.parametrize(
    ("spans", "holes"),
    [
        ([span(0, 10), span(10, 20)], []),
        ([span(0, 10), span(15, 20)], [(10, 15)]),
        ([span(0, 10), span(11, 20, run_us=1)], [(10, 11)]),
        # a long file, a short one within it, and one that starts where the long one ends
        ([span(0, 30), span(10, 12), span(30, 31)], []),
        ([span(0, 30), span(10, 12), span(40, 41)], [(30, 40)]),
    ],
)
def test_a_hole_is_where_nothing_reaches(spans: list[Span], holes: list[tuple[int, int]]) -> None:
    found = gaps.find_gaps(columns.empty(schema.GAPS), spans)
    assert [(gap.from_us / SECOND, gap.to_us / SECOND) for gap in found] == holes
