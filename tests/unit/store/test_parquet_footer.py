"""Footers for which Arrow would end the process, or take much memory: refused before it is asked, wherever they lie."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.fuzz.target import FOUND
from tests.fuzz.targets.recording import in_directory, parts
from tests.helpers import footers

from zombiescope.store import parquet_footer, schema

ROOM_BYTES = 90 << 20
HERE = Path(__file__).parents[3]


def check(path: Path) -> None:
    with path.open("rb") as file:
        parquet_footer.metadata(file)


def test_what_is_written_today_is_let_through(tmp_path: Path) -> None:
    for number, file in enumerate(parts()[1]):
        (tmp_path / str(number)).write_bytes(file[1:])
        check(tmp_path / str(number))
    rows = {"a": [[1, 2], [], None], "b": ["x", None, "y"], "c": [1.5, 2.5, 3.5]}
    pq.write_table(pa.table(rows), tmp_path / "x", row_group_size=1)
    check(tmp_path / "x")


def test_the_widest_table_with_all_its_row_groups_is_far_below_the_limit() -> None:
    widest = max(schema.TABLES, key=lambda table: len(table.columns))
    column = {f"a_column_with_a_long_name_{number}": [0] * 64 for number in range(len(widest.columns) + 20)}
    written = io.BytesIO()
    pq.write_table(pa.table(column), written, row_group_size=1)
    assert int.from_bytes(written.getvalue()[-8:-4], "little") < parquet_footer.MOST_BYTES / 2
    parquet_footer.metadata(written)


def test_counts_of_another_length_than_the_levels_are_refused(tmp_path: Path) -> None:
    """Arrow 26 throws for this file where nothing catches it, and the process ends."""
    (tmp_path / "x").write_bytes((FOUND / "parquet" / "counts-by-level").read_bytes()[1:])
    with pytest.raises(ValueError, match="counts by level"):
        check(tmp_path / "x")


def test_a_made_up_footer_without_malice_is_let_through() -> None:
    file = io.BytesIO(footers.file(footers.footer()))
    assert parquet_footer.metadata(file).num_columns == 1


def test_a_footer_is_checked_once_and_the_last_ones_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    check, checked = parquet_footer.metadata, []

    def counted(file: BinaryIO) -> pq.FileMetaData:
        checked.append(file)
        return check(file)

    monkeypatch.setattr(parquet_footer, "metadata", counted)
    kept, file = parquet_footer.Footers(), io.BytesIO(footers.file(footers.footer()))
    assert kept.of("a", file) is kept.of("a", file)
    assert len(checked) == 1
    for number in range(parquet_footer.MOST_KEPT):
        kept.of(str(number), file)
    kept.of("a", file)
    assert len(checked) == parquet_footer.MOST_KEPT + 2


def test_a_file_of_another_size_is_another_file() -> None:
    kept = parquet_footer.Footers()
    kept.of("a", io.BytesIO(footers.file(footers.footer())))
    with pytest.raises(ValueError, match="Parquet"):
        kept.of("a", io.BytesIO(b"PAR1"))


@pytest.mark.parametrize("name", footers.hostile())
def test_a_hostile_footer_is_refused_by_the_walk_or_the_schema(name: str) -> None:
    with pytest.raises(ValueError, match=r"footer|columns|counts"):
        parquet_footer.metadata(io.BytesIO(footers.file(footers.hostile()[name])))


@pytest.mark.parametrize("size", [0, 1, 8, 11])
def test_a_file_too_short_for_a_footer_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="too short"):
        parquet_footer.walk(io.BytesIO(b"PAR1PAR1PAR1"[:size]))


@pytest.mark.parametrize("keep", range(1, 200, 7))
def test_a_footer_that_is_cut_or_shifted_is_an_error_or_is_none(tmp_path: Path, keep: int) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x")
    data = (tmp_path / "x").read_bytes()
    with contextlib.suppress(ValueError):
        parquet_footer.walk(io.BytesIO(b"PAR1" + data[:-8][-keep:] + keep.to_bytes(4, "little") + b"PAR1"))


def test_no_file_of_a_directory_ends_its_reader_or_takes_its_memory() -> None:
    """In a process of its own, which may have little more than it has: each is damage of the recording, and said."""
    done = subprocess.run(
        [sys.executable, __file__], capture_output=True, text=True, check=False, timeout=60, cwd=HERE,
        env={**os.environ, "PYTHONPATH": str(HERE)},
    )  # fmt: skip
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [name for name, _ in told] == [*footers.hostile()], done.stderr[-500:]
    assert done.returncode == 0, done.stderr[-500:]
    assert all(damage for _, damage in told), told


def _read_all() -> None:
    table = next(each for each in schema.TABLES if each.name == "samples")
    in_directory(table, footers.file(footers.footer()))  # what is loaded at the first look is not counted
    with Path("/proc/self/statm").open() as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + ROOM_BYTES, mapped + ROOM_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, footer in footers.hostile().items():
        sys.stdout.write(json.dumps([name, in_directory(table, footers.file(footer))]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _read_all()
