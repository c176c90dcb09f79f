"""Rows on their way into the next frame, and the numbering of series that lives as long as a segment."""

from __future__ import annotations

from typing import Any

from zombiescope.recording import schema
from zombiescope.recording.log import encode_columns, encode_rows


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
        blocks = [encode_rows(schema.BY_NUMBER[number], rows, wall_us) for number, rows in self._rows.items()]
        blocks += [encode_columns(table, rows, columns, wall_us) for table, rows, columns in self._columns]
        self._rows.clear()
        self._columns.clear()
        return blocks


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
