"""Rows on their way into the next frame, and the numbering of series that lives as long as a segment.

A row that cannot be encoded (a text that is no Unicode, a number where a text belongs) is left out, and a row of `gaps`
says so: it must not cost the frame."""

from __future__ import annotations

from typing import Any

from zombiescope.store import schema
from zombiescope.store.log import encode_columns, encode_rows

MAX_REASON = 200


class Batch:
    """Collects rows by table; whole columns may be added ready-made."""

    def __init__(self) -> None:
        self._rows: dict[int, list[tuple[Any, ...]]] = {}  # by table number
        self._columns: list[tuple[schema.Table, int, list[Any]]] = []

    def add(self, table: schema.Table, row: tuple[Any, ...]) -> None:
        self._rows.setdefault(table.number, []).append(row)

    def extend(self, table: schema.Table, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            self._rows.setdefault(table.number, []).extend(rows)

    def add_columns(self, table: schema.Table, rows: int, columns: list[Any]) -> None:
        if rows:
            self._columns.append((table, rows, columns))

    def take_blocks(self, wall_us: int) -> list[bytes]:
        """Everything as encoded blocks; the batch is empty afterwards."""
        gaps = self._rows.pop(schema.GAPS.number, [])
        blocks = []
        for number, rows in self._rows.items():
            block, left_out = _encode(schema.BY_NUMBER[number], rows, wall_us)
            blocks += block
            gaps += left_out
        for table, count, columns in self._columns:
            try:
                blocks.append(encode_columns(table, count, columns, wall_us))
            except Exception as error:  # noqa: BLE001 - whatever is wrong with them, the frame is written
                gaps.append(_gap(table, count, error, wall_us, wall_us))
        self._rows.clear()
        self._columns.clear()
        while gaps:  # a gap that cannot be written is one more gap, which can be
            block, gaps = _encode(schema.GAPS, gaps, wall_us)
            blocks += block
        return blocks


def _encode(
    table: schema.Table, rows: list[tuple[Any, ...]], wall_us: int
) -> tuple[list[bytes], list[tuple[Any, ...]]]:
    """The rows as a block, if any is left, and the gap that is made by those which cannot be encoded."""
    try:
        return [encode_rows(table, rows, wall_us)], []
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a row, the others are written
        good = [row for row in rows if _can_be_encoded(table, row, wall_us)]
        gap = _gap(table, len(rows) - len(good) or len(rows), error, _first_us(table, rows, wall_us), wall_us)
    if len(good) in (0, len(rows)):  # none, or only together do they fail
        return [], [gap]
    blocks, more = _encode(table, good, wall_us)
    return blocks, [gap, *more]


def _first_us(table: schema.Table, rows: list[tuple[Any, ...]], wall_us: int) -> int:
    times = [row[0] for row in rows if table.columns[0].kind == "time" and type(row[0]) is int]
    return min([*times, wall_us])


def _can_be_encoded(table: schema.Table, row: tuple[Any, ...], wall_us: int) -> bool:
    try:
        encode_rows(table, [row], wall_us)
    except Exception:  # noqa: BLE001
        return False
    return True


def _gap(table: schema.Table, rows: int, error: Exception, from_us: int, to_us: int) -> tuple[int, int, str, str]:
    why = f"{rows} rows of {table.name} could not be written: {type(error).__name__}: {error}"
    return from_us, to_us, f"table {table.name}", why.encode("ascii", "backslashreplace").decode()[:MAX_REASON]


class Series:
    """Numbers for (source, name, key): given out at first use in a segment, with a row in the table `series`."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._numbers: dict[tuple[str, str, str | None], int] = {}

    def number(self, source: str, name: str, key: str | None, kind: str) -> int:
        identity = (source, name, key)
        number = self._numbers.get(identity)
        if number is None:
            number = self._numbers[identity] = len(self._numbers) + 1
            self._batch.add(schema.SERIES, (number, source, name, key, kind))
        return number

    def restart(self) -> None:
        self._numbers.clear()
