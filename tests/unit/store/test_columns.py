"""From Arrow to numpy, whatever pieces a column has."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.compute import call_function

from zombiescope.store import columns

WORDS = ["smp", "mem_cgroup_iter", None, "é", "vfs_read", "mem_cgroup_iter", ""]


def pieces(cuts: list[int]) -> pa.ChunkedArray:
    """The words in several chunks, each a slice of a longer array."""
    whole = columns.text_array(["before", *WORDS])
    bounds = [0, *cuts, len(WORDS)]
    return pa.chunked_array([whole.slice(1 + a, b - a) for a, b in pairwise(bounds)], pa.string())


@pytest.mark.parametrize("cuts", [[], [3], [1, 1, 2, 6], [0], [7]])
def test_texts_are_found_in_a_column_of_any_number_of_chunks(cuts: list[int]) -> None:
    rows = pa.table({"name": pieces(cuts)})
    for wanted in (["mem_cgroup_iter", "é"], ["nothing"], [], ["", "smp"]):
        expected = [row for row, word in enumerate(WORDS) if word in wanted]
        assert columns.among(rows, "name", wanted).tolist() == expected


def test_texts_are_found_in_a_dictionary_column() -> None:
    encoded = pa.chunked_array([pa.array(WORDS[:4]).dictionary_encode(), pa.array(WORDS[4:]).dictionary_encode()])
    rows = pa.table({"name": encoded})
    assert columns.among(rows, "name", ["mem_cgroup_iter"]).tolist() == [1, 5]


def test_no_rows_hold_no_text() -> None:
    empty: Any = pa.table({"name": pa.chunked_array([], pa.string())})
    assert columns.among(empty, "name", ["x"]).tolist() == []


def test_no_kernel_of_arrow_that_crashes_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """indices_nonzero ends the process with pyarrow 20 to 25 where a column has no chunks."""
    called: list[str] = []

    def spy(name: str, *rest: Any) -> Any:
        called.append(name)
        return call_function(name, *rest)

    monkeypatch.setattr(columns, "call_function", spy)
    for column in (pieces([3]), pa.chunked_array([], pa.string())):
        columns.among(pa.table({"name": column}), "name", ["smp"])
    columns.take(pa.table({"name": pieces([3])}), np.array([0, 5], np.int64))
    assert set(called) <= {"is_in", "take"}


def test_where_there_is_no_value_it_is_not_true() -> None:
    held = [True, None, False, True, None, True]
    column = pa.chunked_array([pa.array(held).slice(1, 4), pa.array(held).slice(0, 1), pa.array([], pa.bool_())])
    assert columns.truths(column).tolist() == [False, False, True, False, True]
    assert columns.truths(pa.array(held)).tolist() == [bool(one) for one in held]
