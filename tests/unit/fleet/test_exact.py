"""Exact tests against counting by hand, and corrections against their own definition."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest

from zombiescope.fleet import exact
from zombiescope.fleet.exact import ALPHA, Fisher


def by_counting(nodes: int, affected: int, size: int, hits: int) -> float:
    """Every group of that size, drawn."""
    groups = list(combinations(range(nodes), size))
    return sum(sum(node < affected for node in group) >= hits for group in groups) / len(groups)


@pytest.mark.parametrize("size", range(1, 7))
def test_fishers_test_is_what_counting_all_groups_gives(size: int) -> None:
    fisher = Fisher(9, 4)
    for hits in range(size + 1):
        assert fisher.p_value(size, hits) == pytest.approx(by_counting(9, 4, size, hits), rel=1e-9)


def test_the_lady_tasting_tea() -> None:
    assert Fisher(8, 4).p_value(4, 4) == pytest.approx(1 / 70)
    assert Fisher(8, 4).p_value(4, 3) == pytest.approx(17 / 70)


def test_a_large_fleet_neither_overflows_nor_becomes_zero() -> None:
    fisher = Fisher(100_000, 5_000)
    assert fisher.p_value(2_000, 1_900) == fisher.p_value(2_000, 1_901) == 0.0
    assert fisher.log_p(2_000, 1_901) < fisher.log_p(2_000, 1_900) < -1000
    assert Fisher(100_000, 5_000).p_value(2_000, 100) == pytest.approx(0.5, abs=0.05)


def test_a_binomial_tail_is_what_adding_up_gives() -> None:
    expected = sum(math.comb(10, k) * 0.3**k * 0.7 ** (10 - k) for k in range(6, 11))
    assert exact.binomial_tail(10, 6, 0.3) == pytest.approx(expected)
    assert exact.binomial_tail(10, 0, 0.3) == 1
    assert exact.binomial_tail(3, 4, 0.5) == 0


def test_without_small_groups_the_correction_is_holms() -> None:
    p_values = [0.0001, 0.04, 0.002, 0.03]
    assert exact.corrected(p_values, [0.0] * 4, [0.0] * 4) == pytest.approx([0.0004, 0.06, 0.006, 0.06])


def test_groups_that_could_never_be_found_cost_nothing() -> None:
    alone = exact.corrected([0.001], [1e-9], [1e-9])
    crowd = exact.corrected([0.001], [1e-9], [1e-9] + [0.5] * 10_000)
    assert alone == crowd
    assert exact.corrected([0.001], [1e-9], [1e-9] * 100) == pytest.approx([0.1])


def test_countable_is_the_smallest_number_that_its_definition_allows() -> None:
    rng = random.Random(5)
    for _ in range(50):
        least = sorted(10 ** rng.uniform(-8, 0) for _ in range(rng.randrange(1, 60)))
        allowed = [k for k in range(1, len(least) + 1) if sum(p <= ALPHA / k for p in least) <= k]
        assert exact.countable(least) == allowed[0]
