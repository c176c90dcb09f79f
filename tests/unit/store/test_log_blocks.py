"""Blocks that are read many at once: the same rows as one by one, and nothing that is not whole."""

from __future__ import annotations

import random
import struct
from typing import Any

import pyarrow as pa
import pytest

from zombiescope.store import columns, log, schema
from zombiescope.store.allowance import Allowance, TooMuchError
from zombiescope.store.log import EncodedBlock

WALL_US = 1_775_001_600_000_000
TABLES = (schema.SAMPLES, schema.STACKS, schema.FRAMES, schema.TASKS, schema.CONTAINERS, schema.GPU_SECONDS)


def value(kind: str, dice: random.Random, gap: float) -> Any:
    if dice.random() < gap:
        return None
    if kind == "text":
        return dice.choice(("", "kworker/0:1", "x" * 300, "käse", "\udcff"))
    if kind == "ints":
        return [dice.randrange(1 << 20) for _ in range(dice.randrange(4))]
    return WALL_US - dice.randrange(1 << 22) if kind == "time" else dice.choice((0, 1, -1, 1 << 40, -(1 << 62)))


def body(table: schema.Table, dice: random.Random) -> bytes:
    gaps = [dice.choice((0.0, 0.3, 1.0)) for _ in table.columns]
    rows = [
        [value(column.kind, dice, gap) for column, gap in zip(table.columns, gaps, strict=True)]
        for _ in range(dice.randrange(1, 12))
    ]
    return struct.pack("<qq", WALL_US, 1) + log.encode_rows(table, rows, WALL_US)


def one_by_one(table: schema.Table, bodies: list[bytes], names: list[str] | None = None) -> pa.Table:
    gathering = columns.Gathering(table, names, None, None)
    for each in bodies:
        for block in log.decode_frame(each).blocks:
            gathering.add(block)
    return gathering.table()


def encoded(bodies: list[bytes]) -> list[EncodedBlock]:
    return [block for each in bodies for block in log.decode_frame(each, encoded=True).encoded]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
@pytest.mark.parametrize("seed", range(6))
def test_all_blocks_of_a_table_at_once_are_the_same_rows(table: schema.Table, seed: int) -> None:
    dice = random.Random(seed)
    bodies = [body(table, dice) for _ in range(5)]

    assert columns.decoded(table, encoded(bodies)).equals(one_by_one(table, bodies))
    some = [table.names[-1], table.names[0]]
    assert columns.decoded(table, encoded(bodies), some).equals(one_by_one(table, bodies, some))


def test_blocks_of_an_older_version_are_read_into_the_table_of_today() -> None:
    older = log.encode_rows(schema.RETIRED[1], [[WALL_US, 0, 1, 2, None]], WALL_US)
    today = log.encode_rows(schema.SAMPLES, [[WALL_US + 5, 1, 1, 3, None, None]], WALL_US)
    bodies = [struct.pack("<qq", WALL_US, 1) + older + today]

    rows = columns.decoded(schema.SAMPLES, encoded(bodies))

    assert rows.equals(one_by_one(schema.SAMPLES, bodies))
    assert rows.column("stack").to_pylist() == [2, 3]


def test_a_block_says_how_far_its_first_column_reaches() -> None:
    rows = [[WALL_US + 7, 0, 1, 2, None, None], [WALL_US - 9, 0, 1, 2, None, None], [None, 0, 1, 2, None, None]]
    (block,) = encoded([struct.pack("<qq", WALL_US, 1) + log.encode_rows(schema.SAMPLES, rows, WALL_US)])
    (empty,) = encoded([struct.pack("<qq", WALL_US, 1) + log.encode_rows(schema.SAMPLES, rows[2:], WALL_US)])

    assert (block.lowest, block.highest) == (WALL_US - 9, WALL_US + 7)
    assert (empty.lowest, empty.highest) == (0, -1)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_not_whole_is_damage_in_both_forms(seed: int) -> None:
    dice = random.Random(seed)
    whole = bytearray(body(dice.choice(TABLES), dice) + body(dice.choice(TABLES), dice)[16:])
    if dice.random() < 0.5 and len(whole) > 20:
        del whole[dice.randrange(17, len(whole)) :]
    for _ in range(dice.randrange(3)):
        whole[dice.randrange(16, len(whole))] = dice.randrange(256)

    def outcome(*, as_it_is: bool) -> bool:
        try:
            log.decode_frame(bytes(whole), encoded=as_it_is)
        except (ValueError, TooMuchError):
            return False
        return True

    assert outcome(as_it_is=True) == outcome(as_it_is=False)


def test_what_a_block_takes_once_it_is_decoded_is_paid_for_when_it_is_read() -> None:
    rows = [[number, list(range(40))] for number in range(200)]
    bodies = struct.pack("<qq", WALL_US, 1) + log.encode_rows(schema.STACKS, rows, WALL_US)
    kept, spent = Allowance(1 << 20), Allowance(1 << 20)

    log.decode_frame(bodies, kept, encoded=True)
    log.decode_frame(bodies, spent)

    assert kept.left_bytes == spent.left_bytes
    with pytest.raises(TooMuchError):
        log.decode_frame(bodies, Allowance(1000), encoded=True)
