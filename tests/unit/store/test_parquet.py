"""Parquet of one table: in the order of time, found by time, and an error where a bit is wrong."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zombiescope.store import columns, parquet, parquet_part, schema
from zombiescope.store.allowance import TOTAL_FLOOR_BYTES
from zombiescope.store.layout import TableFacts
from zombiescope.store.parquet import TableWriter

START_US = 1_760_000_000_000_000


def counters(*times: int) -> pa.Table:
    values = {"time": [START_US + at for at in times], "series": [1] * len(times), "value": list(times)}
    return pa.table(values, schema=columns.arrow_schema(schema.COUNTERS))


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROWS_PER_GROUP", 4)


def test_rows_that_come_a_little_late_are_written_in_order(small_groups: None, tmp_path: Path) -> None:
    writer = TableWriter(schema.COUNTERS, "lab-1", tmp_path / "x")
    writer.add(counters(5, 1, 3, 2), settled_us=START_US + 3)
    writer.add(counters(4, 9, 6, 8), settled_us=START_US + 9)
    writer.add(counters(7 + 3))
    facts = writer.close()
    read = pq.read_table(tmp_path / "x")
    assert read.column("value").to_pylist() == [1, 2, 3, 4, 5, 6, 8, 9, 10]
    assert set(read.column("part").to_pylist()) == {"lab-1"}
    assert facts == TableFacts(9, (tmp_path / "x").stat().st_size, START_US + 1, START_US + 10)


def test_a_window_is_found_by_the_bounds_of_its_groups(small_groups: None, tmp_path: Path) -> None:
    writer = TableWriter(schema.COUNTERS, "lab-1", tmp_path / "x")
    for start in (0, 10, 20):
        writer.add(counters(*range(start, start + 4)), settled_us=START_US + start + 10)
    writer.close()
    about = pq.ParquetFile(tmp_path / "x").metadata
    groups = [about.row_group(number) for number in range(about.num_row_groups)]
    bounds = [group.column(0).statistics for group in groups if group.num_rows]
    assert len(bounds) == 3
    assert all(one.max < other.min for one, other in pairwise(bounds))


@pytest.mark.parametrize(("threaded_from", "threads"), [(9, False), (8, True)])
def test_few_rows_are_read_without_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threaded_from: int, threads: bool
) -> None:
    """Each thread keeps memory of its own, which a small read never makes good."""
    writer = TableWriter(schema.COUNTERS, "lab-1", tmp_path / "x")
    writer.add(counters(*range(8)))
    writer.close()
    used: list[bool] = []
    read = pq.ParquetFile.read_row_groups

    def watch(self: pq.ParquetFile, groups: list[int], *, columns: list[str], use_threads: bool) -> pa.Table:
        used.append(use_threads)
        return read(self, groups, columns=columns, use_threads=use_threads)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", watch)
    monkeypatch.setattr(parquet_part, "THREADED_ROWS", threaded_from)
    with (tmp_path / "x").open("rb") as file:
        assert len(parquet_part._read_parquet(file, schema.COUNTERS, None, None, None, TOTAL_FLOOR_BYTES)) == 8
    assert used == [threads]


def test_a_flipped_bit_is_an_error_and_not_a_number(tmp_path: Path) -> None:
    writer = TableWriter(schema.COUNTERS, "lab-1", tmp_path / "x")
    writer.add(counters(*range(1000)))
    writer.close()
    right = pq.read_table(tmp_path / "x")
    whole = (tmp_path / "x").read_bytes()
    found = 0
    for place in range(4, len(whole) - 1200, 37):
        (tmp_path / "y").write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            assert pq.read_table(tmp_path / "y", page_checksum_verification=True) == right
        except OSError:
            found += 1
    assert found


def test_an_abandoned_file_is_gone(tmp_path: Path) -> None:
    writer = TableWriter(schema.COUNTERS, "lab-1", tmp_path / "x")
    writer.add(counters(1))
    writer.abandon()
    assert not list(tmp_path.iterdir())


def test_no_rows_have_no_bounds(tmp_path: Path) -> None:
    facts = TableWriter(schema.COUNTERS, "lab-1", tmp_path / "x").close()
    assert (facts.rows, facts.from_us, facts.to_us) == (0, None, None)


@pytest.mark.parametrize("table", schema.TABLES, ids=lambda table: table.name)
def test_columns_that_a_file_does_not_have_have_no_values(tmp_path: Path, table: schema.Table) -> None:
    """An older version did not write them all."""
    every = columns.arrow_schema(table)
    kept = every.field(table.time_column or every.names[0])
    pq.write_table(pa.table({kept.name: pa.nulls(3, kept.type)}), tmp_path / "x")
    with (tmp_path / "x").open("rb") as file:
        rows = parquet_part._read_parquet(file, table, None, None, None, TOTAL_FLOOR_BYTES)
    assert (len(rows), rows.schema.names) == (3, every.names)


def test_a_text_that_is_stored_as_something_else_is_damage(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    nested = pa.array([{"name": "a"}], pa.struct([("name", pa.string())]))
    pq.write_table(pa.table({"name": nested}), folder)
    with folder.open("rb") as file, pytest.raises((pa.ArrowException, ValueError)):
        parquet_part._read_parquet(file, schema.FRAMES, None, None, None, TOTAL_FLOOR_BYTES)
