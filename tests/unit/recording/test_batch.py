"""Rows on their way into a frame: each is written once, and a series is explained in every segment that uses it."""

from __future__ import annotations

from zombiescope.recording import schema
from zombiescope.recording.batch import Batch, Series


def test_what_was_taken_is_not_taken_again() -> None:
    batch = Batch()
    batch.add(schema.COUNTERS, (5, 1, 7))
    batch.extend(schema.COUNTERS, [(6, 1, 8)])
    assert len(batch.take_blocks(10)) == 1
    assert batch.take_blocks(11) == []


def test_nothing_makes_no_block() -> None:
    batch = Batch()
    batch.extend(schema.COUNTERS, [])
    batch.add_columns(schema.COUNTERS, 0, [[], [], []])
    assert batch.take_blocks(10) == []


def test_a_series_has_a_row_in_each_segment_and_one_number_in_it() -> None:
    batch = Batch()
    series = Series(batch)
    first = series.number("vmstat", "pgfault", None, "counter")
    assert series.number("vmstat", "pgfault", "", "counter") != first, "no key is another series than an empty one"
    assert series.number("vmstat", "pgfault", None, "counter") == first
    assert len(batch.take_blocks(10)) == 1
    series.number("vmstat", "pgfault", None, "counter")
    assert batch.take_blocks(11) == []
    series.restart()
    assert series.number("vmstat", "pgfault", None, "counter") == first
    assert len(batch.take_blocks(12)) == 1
