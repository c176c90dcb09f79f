"""The recorder's own cost: each tick its own part, memory now and then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from zombiescope.recorder import cost as module
from zombiescope.recorder.cost import RSS_EVERY, CostBook
from zombiescope.recorder.tick import Tick
from zombiescope.store import schema
from zombiescope.store.batch import Batch

NOW_US = 5_000_000


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What five seconds cost, of which the third is dear."""
    clock = iter(range(1_000_000, 100_000_000, 2_000_500))
    monkeypatch.setattr(module, "time", SimpleNamespace(process_time_ns=lambda: next(clock)))
    sampler, writer = SimpleNamespace(lost=0, records=0), SimpleNamespace(bytes_written=0)
    children = [0]
    batch = Batch()
    book = CostBook(batch, sampler, writer, lambda: children[0])  # type: ignore[arg-type]
    for second in range(RSS_EVERY + 2):
        sampler.records += 100
        writer.bytes_written += 4000
        if second == 2:
            sampler.lost, children[0] = 9, 50_000
        book.tick(Tick(0, NOW_US, 1_000_000, late_us=second))
    return [dict(zip(schema.COST.names, row, strict=True)) for row in batch._rows[schema.COST.number]]


def test_a_row_is_what_was_added_since_the_one_before(rows: list[dict[str, Any]]) -> None:
    assert {(row["ring_records"], row["log_bytes"]) for row in rows} == {(100, 4000)}
    assert [row["lost"] for row in rows[:5]] == [0, 0, 9, 0, 0]
    assert [row["helper_cpu_us"] for row in rows[:5]] == [0, 0, 50_000, 0, 0]
    assert [row["tick_late_us"] for row in rows[:3]] == [0, 1, 2]


def test_parts_of_a_microsecond_are_not_lost_for_ever(rows: list[dict[str, Any]]) -> None:
    assert [row["cpu_us"] for row in rows[:4]] == [2000, 2001, 2000, 2001]


def test_memory_is_read_now_and_then(rows: list[dict[str, Any]]) -> None:
    assert [number for number, row in enumerate(rows) if row["rss_bytes"]] == [0, RSS_EVERY]
