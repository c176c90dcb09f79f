"""Heat maps: every sample in the cell in which it was taken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.helpers.made import Sample, opened
from tests.helpers.recordings import SECOND, START_US, Written, write_recording

from zombiescope.query import colours, heatmap
from zombiescope.query.selection import Filters, Selection
from zombiescope.store.reader import open_recording


def test_a_column_is_a_second_and_row_0_is_its_start(tmp_path: Path) -> None:
    samples = [Sample(0, "a"), Sample(99_999, "a"), Sample(100_000, "a"), Sample(2 * SECOND + 950_000, "a")]
    with opened(tmp_path, *samples) as recording:
        drawn = heatmap.subsecond(Selection(recording, START_US, START_US + 3 * SECOND), rows=10)
    assert (drawn.start_us, drawn.columns, drawn.rows) == (START_US, 3, 10)
    expected = np.zeros((3, 10), int)
    expected[0, 0], expected[0, 1], expected[2, 9] = 2, 1, 1
    assert drawn.values.tolist() == expected.tolist()
    assert drawn.max == 2


def test_a_window_inside_a_second_keeps_the_offset_of_the_second(tmp_path: Path) -> None:
    with opened(tmp_path, Sample(600_000, "a"), Sample(1_200_000, "a")) as recording:
        drawn = heatmap.subsecond(Selection(recording, START_US + 500_000, START_US + 1_300_000), rows=10)
    assert (drawn.start_us, drawn.columns) == (START_US, 2)
    assert (drawn.values[0, 6], drawn.values[1, 2], drawn.total) == (1, 1, 2)


def test_the_last_microsecond_is_a_column_only_with_a_sample_in_it(tmp_path: Path) -> None:
    with opened(tmp_path, Sample(10, "a"), Sample(2 * SECOND, "a")) as recording:
        assert heatmap.subsecond(Selection(recording, START_US, START_US + SECOND + 1)).columns == 1
        assert heatmap.subsecond(Selection(recording, START_US, START_US + 2 * SECOND + 1)).columns == 3


def test_every_core_has_a_row_also_an_idle_one(tmp_path: Path) -> None:
    with opened(tmp_path, Sample(10, "a", 5), Sample(SECOND + 10, "a", 5), Sample(20, "a", 0)) as recording:
        drawn = heatmap.by_core(Selection(recording, START_US, START_US + 2 * SECOND))
    assert drawn.cores == (0, 1, 5)
    assert drawn.values.tolist() == [[1, 0, 1], [0, 0, 1]]


def test_filtered_cores_are_the_only_rows(tmp_path: Path) -> None:
    with opened(tmp_path, Sample(10, "a", 1), Sample(20, "a", 0)) as recording:
        drawn = heatmap.by_core(Selection(recording, START_US, START_US + SECOND, Filters(cpus=frozenset({1}))))
    assert drawn.cores == (1,)


def test_narrowing_loses_no_sample(tmp_path: Path) -> None:
    with opened(tmp_path, *(Sample(second * SECOND + second * 7, "a") for second in range(31))) as recording:
        drawn = heatmap.subsecond(Selection(recording, START_US, START_US + 31 * SECOND))
    small = drawn.narrowed(10, 7)
    assert (small.columns, small.rows, small.total) == (8, 5, 31)
    assert small.column_us == 4 * SECOND


def test_a_hole_in_the_recording_is_blind_and_not_idle(tmp_path: Path) -> None:
    write_recording(tmp_path, seconds=5, incident=False)
    write_recording(tmp_path, seconds=5, incident=False, start_us=START_US + 20 * SECOND, first_seq=9)
    with open_recording(tmp_path) as recording:
        drawn = heatmap.subsecond(Selection(recording, START_US, START_US + 25 * SECOND))
    assert drawn.blind == ((START_US + 5 * SECOND, START_US + 20 * SECOND),)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_recording(tmp_path_factory.mktemp("rec"), cpus=4, seconds=20)


def test_both_maps_hold_every_sample_and_show_the_lost_core(written: Written) -> None:
    assert written.incident is not None
    with open_recording(written.dir) as recording:
        selection = Selection(recording, recording.start_us, recording.end_us + 1)
        cores = heatmap.by_core(selection)
        assert heatmap.subsecond(selection, rows=33).total == cores.total == written.samples
    hottest = np.unravel_index(int(cores.values.argmax()), cores.values.shape)
    assert hottest[1] == written.incident.cpu
    assert written.incident.from_us <= cores.start_us + int(hottest[0]) * SECOND < written.incident.to_us


def test_a_full_core_has_no_stripe_at_the_usual_rate(tmp_path: Path) -> None:
    """99 samples a second in 50 rows: the counts must have a row with one, and the picture must not show it."""
    samples = [Sample(round(number * SECOND / 99) + 3_000, "a") for number in range(3 * 99)]
    with opened(tmp_path, *samples) as recording:
        recording.node["hz"] = 99
        drawn = heatmap.subsecond(Selection(recording, START_US, START_US + 3 * SECOND))
    assert set(drawn.values[1].tolist()) == {1, 2}
    assert drawn.spread is not None
    assert drawn.spread[1] == pytest.approx(np.full(50, 99 / 50), abs=1e-3)
    assert float(drawn.spread.sum()) == pytest.approx(drawn.total)


@pytest.mark.parametrize("rows", [1, 10, 50, 100, 1000])
def test_spreading_keeps_every_sample_in_any_number_of_rows(tmp_path: Path, rows: int) -> None:
    with opened(tmp_path, Sample(10, "a"), Sample(SECOND - 10, "a"), Sample(2 * SECOND + 500_000, "a")) as recording:
        recording.node["hz"] = 99
        drawn = heatmap.subsecond(Selection(recording, START_US, START_US + 3 * SECOND), rows)
        assert drawn.spread is not None
        assert float(drawn.spread.sum()) == pytest.approx(3)
        small = drawn.narrowed(1, 5)
        assert small.spread is not None
        assert float(small.spread.sum()) == pytest.approx(3)
        assert drawn.values.sum() == 3


def test_the_rate_of_an_import_is_seen_in_its_samples(tmp_path: Path) -> None:
    samples = [Sample(round(number * SECOND / 99) + 3_000, "a", cpu) for number in range(99) for cpu in (0, 1)]
    with opened(tmp_path, *samples) as recording:
        recording.node.pop("hz", None)
        drawn = heatmap.subsecond(Selection(recording, START_US, START_US + SECOND))
    assert drawn.spread is not None
    assert drawn.spread[0, 1:-1] == pytest.approx(np.full(48, 2 * 99 / 50), abs=0.01)


def test_a_recording_that_does_not_say_its_rate_is_drawn_from_counts(tmp_path: Path) -> None:
    with opened(tmp_path, Sample(10, "a")) as recording:
        recording.node.pop("hz", None)
        assert heatmap.subsecond(Selection(recording, START_US, START_US + SECOND)).spread is None


def test_a_full_picture_is_no_wall_of_the_darkest_colour() -> None:
    full = colours.HeatScale.of([2.0] * 500)
    assert 0.3 < full.level(2.0) < 0.6
    assert full.level(1.0) < full.level(2.0) < full.level(2.4)
    idle = colours.HeatScale.of([1.0] * 500 + [200.0])
    assert (idle.level(1.0), idle.level(200.0)) == (0.0, 1.0)
