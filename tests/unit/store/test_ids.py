"""Ids of several parts in one recording: never those of another part, and never far more than there are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from zombiescope.store import columns, schema
from zombiescope.store.ids import UniqueIds, relabel
from zombiescope.store.part import Part


def part(name: str, count: int) -> Part:
    kinds = dict.fromkeys(schema.ID_KINDS, count)
    return cast("Part", SimpleNamespace(name=name, ids=lambda: kinds))


def stacks(*rows: tuple[int | None, list[int]]) -> pa.Table:
    made: dict[str, list[Any]] = {"stack": [row[0] for row in rows], "frames": [row[1] for row in rows]}
    return pa.table(made, schema=columns.arrow_schema(schema.STACKS))


def test_two_parts_never_share_an_id() -> None:
    ids = UniqueIds()
    first = ids.apply(part("a", 3), schema.STACKS, stacks((0, [0, 1]), (2, [2])))
    second = ids.apply(part("b", 3), schema.STACKS, stacks((0, [0, 1]), (2, [2])))
    assert first.column("stack").to_pylist() == [0, 2]
    assert second.column("stack").to_pylist() == [3, 5]
    assert second.column("frames").to_pylist() == [[3, 4], [5]]


@pytest.mark.parametrize("foreign", [-1, 3, 2**31 - 1])
def test_an_id_that_its_part_does_not_explain_is_unknown_and_not_another_part_s(foreign: int) -> None:
    ids = UniqueIds()
    ids.base(part("a", 3), "stack")
    moved = ids.apply(part("b", 3), schema.STACKS, stacks((foreign, [0, 3]), (1, [1])))
    assert moved.column("stack").to_pylist() == [None, 4]
    assert moved.column("frames").to_pylist() == [[3, None], [4]]


def test_parts_that_stay_keep_their_ids_until_the_holes_are_large() -> None:
    ids = UniqueIds()
    for name, count in (("gone", 90_000), ("small", 10)):
        ids.base(part(name, count), "stack")
    ids.keep({"small"})
    assert ids.base(part("small", 10), "stack") == 90_000
    ids.base(part("next", 200_000), "stack")
    ids.base(part("last", 10), "stack")
    ids.keep({"last"})
    assert ids.base(part("last", 10), "stack") == 0, "an array of 290,020 for ten ids"


def test_an_id_without_a_new_one_becomes_null() -> None:
    made = {"time": [1, 2, 3], "series": [0, 1, 2], "value": [5, 6, 7]}
    rows = pa.table(made, schema=columns.arrow_schema(schema.COUNTERS))
    moved = relabel(rows, schema.COUNTERS, {"series": columns.numbers(pa.array([7, -1]))})
    assert moved.column("series").to_pylist() == [7, None, None]
    lists = relabel(stacks((0, [0, 1]), (1, [])), schema.STACKS, {"frame": columns.numbers(pa.array([4, -1]))})
    assert lists.column("frames").to_pylist() == [[4, None], []]
    assert lists.column("stack").to_pylist() == [0, 1], "its own ids are given by whoever merges it"
