"""Counting different names in little memory."""

from __future__ import annotations

import pytest

from zombiescope.recorder.ledger import EXACT, Distinct


@pytest.mark.parametrize("count", [0, 1, 25, EXACT])
def test_few_are_counted_exactly(count: int) -> None:
    names = Distinct()
    for _ in range(3):
        for number in range(count):
            names.add(f"/docker/{number}")
    assert names.count == count


@pytest.mark.parametrize("count", [EXACT + 1, 1000, 30_000])
def test_many_are_estimated(count: int) -> None:
    names = Distinct()
    for number in range(count):
        names.add(f"/docker/{number:064x}")
    assert names.count == pytest.approx(count, rel=0.05)
