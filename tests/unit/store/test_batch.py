"""A row that cannot be encoded costs itself, never the frame."""

from __future__ import annotations

import io
from array import array
from typing import Any

import pytest

from zombiescope.store import schema
from zombiescope.store.batch import Batch, Series
from zombiescope.store.log import SegmentEncoder, SegmentReader

NOW_US = 1_790_000_000_000_000
NOT_UNICODE = "half of a pair: \ud83d"


def written(batch: Batch) -> dict[str, list[dict[str, Any]]]:
    """What a reader finds of the batch's next frame: table -> rows."""
    encoder = SegmentEncoder({"format": schema.FORMAT})
    data = encoder.preamble + encoder.frame(NOW_US, 0, batch.take_blocks(NOW_US), closes=True)
    [frame] = SegmentReader(io.BytesIO(data)).frames()
    found: dict[str, list[dict[str, Any]]] = {}
    for block in frame.blocks:
        columns = {name: list(block.column(name)) for name in block.table.names}
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        found.setdefault(block.table.name, []).extend(rows)
    return found


def event(text: object, at_us: int = NOW_US - 5) -> tuple[Any, ...]:
    return (at_us, "mark", "mark", "info", text, "{}")


def test_a_text_that_is_no_unicode_costs_its_row_only() -> None:
    batch = Batch()
    batch.add(schema.EVENTS, event("before"))
    batch.add(schema.EVENTS, event(NOT_UNICODE, NOW_US - 9))
    batch.add(schema.EVENTS, event("after"))
    batch.add(schema.COST, (NOW_US, 1, None, 0, 0, 0, 0, 0))
    found = written(batch)
    assert [row["text"] for row in found["events"]] == ["before", "after"]
    assert len(found["cost"]) == 1
    [gap] = found["gaps"]
    assert (gap["time"], gap["end"], gap["source"]) == (NOW_US - 9, NOW_US, "table events")
    assert "1 rows of events could not be written: UnicodeEncodeError" in gap["why"]


@pytest.mark.parametrize("wrong", [17, b"bytes", object()], ids=["number", "bytes", "object"])
def test_a_value_of_another_type_likewise(wrong: object) -> None:
    batch = Batch()
    batch.add(schema.EVENTS, event(wrong))
    found = written(batch)
    assert "events" not in found
    assert [row["source"] for row in found["gaps"]] == ["table events"]


def test_a_row_of_the_wrong_length_likewise() -> None:
    batch = Batch()
    batch.add(schema.EVENTS, event("good"))
    batch.add(schema.EVENTS, (NOW_US, "too short"))
    assert [row["text"] for row in written(batch)["events"]] == ["good"]


def test_columns_that_cannot_be_encoded_are_a_gap_too() -> None:
    batch = Batch()
    batch.add_columns(schema.SAMPLES, 1, [array("q", [NOW_US]), array("q", [0]), ["no number"], None, None, None])
    batch.add(schema.EVENTS, event("good"))
    found = written(batch)
    assert set(found) == {"events", "gaps"}
    assert found["gaps"][0]["source"] == "table samples"


def test_a_gap_that_cannot_be_written_is_said_by_one_that_can() -> None:
    batch = Batch()
    batch.add(schema.GAPS, (NOW_US - 3, NOW_US, "disk", NOT_UNICODE))
    batch.add(schema.GAPS, (NOW_US - 2, NOW_US, "disk", "full"))
    assert {row["source"]: row["why"][:20] for row in written(batch)["gaps"]} == {
        "disk": "full",
        "table gaps": "1 rows of gaps could",
    }


def test_the_batch_is_empty_afterwards() -> None:
    batch = Batch()
    batch.add(schema.EVENTS, event(NOT_UNICODE))
    batch.take_blocks(NOW_US)
    assert batch.take_blocks(NOW_US) == []


def test_what_was_taken_is_not_taken_again() -> None:
    batch = Batch()
    batch.add(schema.COUNTERS, (5, 1, 7))
    batch.extend(schema.COUNTERS, [(6, 1, 8)])
    assert len(batch.take_blocks(10)) == 1
    assert batch.take_blocks(11) == []


def test_a_series_has_a_row_in_each_segment_and_one_number_in_it() -> None:
    batch = Batch()
    series = Series(batch)
    first = series.number("vmstat", "pgfault", None, "counter")
    assert series.number("vmstat", "pgfault", "", "counter") != first, "no key is another series than an empty one"
    assert series.number("vmstat", "pgfault", None, "counter") == first
    assert len(batch.take_blocks(10)) == 1
    series.restart()
    assert series.number("vmstat", "pgfault", None, "counter") == first
    assert len(batch.take_blocks(12)) == 1
