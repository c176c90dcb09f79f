"""How much less a GPU did than usual: by its own past, whatever that was, and never by what was not measured."""

from __future__ import annotations

import numpy as np
import pytest

from zombiescope.query.gpu_use import fall, falls

NAN = float("nan")


def series(*parts: tuple[float, int]) -> np.ndarray:
    return np.concatenate([np.full(many, value) for value, many in parts])


@pytest.mark.parametrize("usual", [4.0, 9.0, 97.0, 650.0])
def test_lost_is_the_sum_of_what_each_second_did_less(usual: float) -> None:
    found = fall(series((usual, 60)), series((usual / 4, 8)))
    assert found is not None
    assert (found.usual, found.is_unusual) == (usual, True)
    assert found.lost_s == pytest.approx(6.0)


def test_a_checkpoint_in_the_past_does_not_move_what_is_usual() -> None:
    found = fall(series((90, 40), (0, 15), (90, 40)), series((20, 10)))
    assert found is not None
    assert (found.usual, found.is_unusual) == (90, True)


def test_what_varies_by_itself_is_not_unusual() -> None:
    waves = series(*[(90, 10), (20, 10)] * 6)
    found = fall(waves, series((20, 10)))
    assert found is None or not found.is_unusual


@pytest.mark.parametrize(
    ("past", "during"),
    [
        (series((90, 5)), series((10, 10))),
        (series((NAN, 60)), series((10, 10))),
        (series((90, 60)), series((NAN, 8), (10, 2))),
        (series((0, 60)), series((0, 10))),
        (series((90, 60)), np.zeros(0)),
    ],
)
def test_nothing_is_said_about_what_was_not_measured_or_not_used(past: np.ndarray, during: np.ndarray) -> None:
    assert fall(past, during) is None


def test_falls_are_found_where_they_are_and_end_where_it_recovers() -> None:
    assert falls(series((90, 40), (20, 10), (90, 10))) == [(40, 50)]
    assert falls(series((90, 40), (20, 20))) == [(40, 60)]
    assert falls(series((90, 60))) == falls(series((0, 60))) == falls(np.zeros(0)) == []


def test_seconds_that_are_not_known_neither_begin_nor_end_a_fall() -> None:
    assert falls(series((90, 40), (NAN, 5), (90, 10))) == []
    assert falls(series((90, 40), (20, 4), (NAN, 3), (20, 3), (90, 10))) == [(40, 50)]


def test_a_second_that_is_hardly_below_is_not_part_of_it() -> None:
    assert falls(series((9, 40), (7, 1), (2, 10), (9, 9))) == [(41, 51)]
