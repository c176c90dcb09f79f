from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zombiescope.base.baseline import Baseline, RunningBaseline, percentile

NUMBERS = st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=50)


@given(NUMBERS, st.sampled_from([25.0, 50.0, 75.0, 90.0, 95.0]))
def test_a_percentile_is_that_of_numpy(values: list[float], at: float) -> None:
    assert percentile(values, at) == float(np.percentile(values, at))


@given(NUMBERS)
def test_level_and_spread_are_median_and_median_deviation(values: list[float]) -> None:
    baseline = Baseline.of(values)
    middle = float(np.median(values))
    assert baseline == Baseline(middle, 1.4826 * float(np.median(np.abs(np.array(values) - middle))))


def test_an_excess_stands_out_of_the_spread() -> None:
    baseline = Baseline(100.0, 10.0)
    assert baseline.excess(129.0, spreads=3.0) == 0.0
    assert baseline.excess(130.0, spreads=3.0) == 30.0
    assert baseline.excess(130.0, spreads=3.0, least=31.0) == 0.0


def test_a_running_baseline_judges_when_it_has_learned() -> None:
    baseline = RunningBaseline(learned_after=30)
    assert not any(baseline.is_unusual(100.0, 1.0) for _ in range(30))
    assert baseline.is_unusual(101.0, 1.0)
    assert not baseline.is_unusual(100.5, 1.0)


def test_a_storm_does_not_become_usual_at_once() -> None:
    baseline = RunningBaseline()
    for _ in range(60):
        baseline.is_unusual(1.0, 1.0)
    assert all(baseline.is_unusual(50.0, 1.0) for _ in range(10))


@pytest.mark.parametrize("span", [60, 300])
def test_a_running_mean_weighs_the_newest_value_by_its_span(span: int) -> None:
    baseline = RunningBaseline(span=span, learned_after=0)
    for _ in range(span):
        baseline.learn(0.0)
    baseline.learn(float(span))
    assert baseline.mean == pytest.approx(1.0)
