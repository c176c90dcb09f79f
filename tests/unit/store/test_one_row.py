"""A block of one row says the same as one of many."""

from __future__ import annotations

import random
from typing import Any

import pytest

from zombiescope.store import schema
from zombiescope.store.log import _CLOCK as CLOCK
from zombiescope.store.log import DamagedError, decode_frame, encode_rows

WALL_US = 1_760_000_000_000_000


def value(kind: str, rng: random.Random) -> Any:
    if rng.random() < 0.3:
        return None
    if kind == "text":
        return rng.choice(("", "a", "größer", "x" * 300))
    return WALL_US + rng.randrange(-(10**9), 10**9) if kind == "time" else rng.choice((0, -1, 2**62, -(2**62), 7))


@pytest.mark.parametrize(
    "table", [table for table in schema.BY_NUMBER.values() if b"l" not in table.kinds], ids=lambda t: t.name
)
def test_one_row_is_what_the_first_of_two_is(table: schema.Table) -> None:
    rng = random.Random(table.number)
    for _ in range(20):
        rows = [[value(column.kind, rng) for column in table.columns] for _ in range(2)]
        one, two = (
            decode_frame(CLOCK.pack(WALL_US, 0) + encode_rows(table, rows[:count], WALL_US)).blocks[0]
            for count in (1, 2)
        )
        for name, stored in zip(table.names, rows[0], strict=True):
            assert one.column(name)[0] == two.column(name)[0] == stored
            assert len(one.column(name)) == 1


def test_a_row_that_is_cut_short_anywhere_is_damage_and_nothing_else() -> None:
    row = [WALL_US, "boot", 60, 1, 2, None, 3, 4, 5, 6, 7, 8, 9, 10, None]
    whole = CLOCK.pack(WALL_US, 0) + encode_rows(schema.MINUTES, [row], WALL_US)
    for length in range(CLOCK.size + 3, len(whole)):
        with pytest.raises((DamagedError, ValueError)):
            decode_frame(whole[:length])


@pytest.mark.parametrize("mode", [3, 255])
def test_a_mode_that_does_not_exist_is_damage(mode: int) -> None:
    body = CLOCK.pack(WALL_US, 0) + bytes((schema.MINUTES.number, 1, mode))
    with pytest.raises(ValueError, match="column mode"):
        decode_frame(body)


def test_a_text_longer_than_the_frame_is_damage() -> None:
    body = (
        CLOCK.pack(WALL_US, 0) + bytes((schema.MINUTES.number, 1, 0, 1)) + b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    )
    with pytest.raises(ValueError, match="cut short"):
        decode_frame(body)
