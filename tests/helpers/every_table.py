"""Rows of every table of the schema, drawn at random, and what they say once their ids are read.

Nothing here knows a table by its name, but `cores`, whose ticks others are placed by: a table that is added to the
schema is in it at once. Each segment numbers its dictionaries in another order, so an id that is taken for one of
another segment stands for something else.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers.made import SECOND, START_US, Rows, write_segment
from zombiescope.store import columns, schema
from zombiescope.store.reader import Recording

SEGMENT_S = 10
ROWS = 14
CPUS = (0, 1)
_ENTRIES = 24
_OFTEN = 0.85

Told = dict[str, list[tuple[Any, ...]]]
"""Table -> its rows in the order of time; where an id was there is what it stands for."""


@dataclass(frozen=True)
class Machine:
    """`salt` is in every word; numbers are those of any other machine. `series`: whether samples may be of
    several events, as only imported ones are."""

    seed: int
    salt: int = 0
    series: bool = True

    def segment(self, number: int) -> tuple[Rows, Told]:
        """The rows of a segment, and what they say."""
        return _Segment(self, number).made()

    def write(self, place: Path, segments: int = 2) -> Told:
        """A recording of some segments; what it says."""
        told: Told = {table.name: [] for table in schema.DATA}
        for number in range(segments):
            rows, said = self.segment(number)
            write_segment(place, rows, start_us=START_US + number * SEGMENT_S * SECOND, seq=number)
            for name, more in said.items():
                told[name] += more
        return told


class _Segment:
    def __init__(self, machine: Machine, number: int) -> None:
        self._machine, self._number = machine, number
        self._random = random.Random(f"{machine.seed} {machine.salt} {number}")
        self._start_us = START_US + number * SEGMENT_S * SECOND
        self._entries: dict[str, list[tuple[Any, ...]]] = {}
        """Kind of id -> rows of the dictionary, by their ids."""
        self._meant: dict[str, list[tuple[Any, ...]]] = {}

    def made(self) -> tuple[Rows, Told]:
        rows: Rows = {}
        told: Told = {}
        for table in reversed(schema.DICTIONARIES):
            kind = str(table.explains)
            self._entries[kind], self._meant[kind] = self._dictionary(table)
        for table in schema.DICTIONARIES:
            rows[table.name] = self._entries[str(table.explains)]
        for table in schema.DATA:
            drawn = self._ticks(table) if table is schema.CORES else [self._row(table, n) for n in range(ROWS)]
            rows[table.name] = drawn
            told[table.name] = [self._said(table, row) for row in drawn]
        return rows, told

    def _dictionary(self, table: schema.Table) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """The same entries in every segment, under other ids."""
        shared = random.Random(f"{self._machine.seed} {self._machine.salt} {table.name}")
        order = list(range(_ENTRIES))
        self._random.shuffle(order)
        entries = [tuple(_entry_cell(self._machine, column, each, shared) for column in table.columns[1:])
                   for each in range(_ENTRIES)]  # fmt: skip
        rows, meant = [], []
        for number, each in enumerate(order):
            cells = [self._drawn_ids(column) if column.ids else cell
                     for column, cell in zip(table.columns[1:], entries[each], strict=True)]  # fmt: skip
            rows.append((number, *cells))
            meant.append(self._said(table, rows[-1])[1:])
        return rows, meant

    def _drawn_ids(self, column: schema.Column) -> Any:
        count = len(self._entries[str(column.ids)])
        if column.kind == "ints":
            return tuple(self._random.randrange(count) for _ in range(self._random.randint(1, 5)))
        return self._random.randrange(count)

    def _said(self, table: schema.Table, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(_read(column, cell, self._meant, table) for column, cell in zip(table.columns, row, strict=True))

    def _ticks(self, table: schema.Table) -> list[tuple[Any, ...]]:
        found = []
        for second in range(1, SEGMENT_S + 1):
            for cpu in CPUS:
                row = dict(zip(table.names, self._row(table, 0), strict=True))
                row |= {"time": self._start_us + second * SECOND, "interval_us": SECOND, "cpu": cpu}
                found.append(tuple(row.values()))
        return found

    def _row(self, table: schema.Table, place: int) -> tuple[Any, ...]:
        at_us = self._start_us + (place * 2 + 1) * SEGMENT_S * SECOND // (2 * ROWS) + self._random.randrange(1000)
        return tuple(self._cell(table, column, at_us, place) for column in table.columns)

    def _cell(self, table: schema.Table, column: schema.Column, at_us: int, place: int) -> Any:
        if column.name == table.time_column:
            return at_us
        if table is schema.SAMPLES and column.name == "series" and not self._machine.series:
            return None
        surely = column.ids or column.meaning in ("cpu", "gpu") or column.name in table.holds_by or place == 0
        if not surely and self._random.random() > _OFTEN:
            return None
        if column.ids:
            return self._drawn_ids(column)
        return _cell(self._machine, column, at_us, self._random)


def _entry_cell(machine: Machine, column: schema.Column, number: int, drawn: random.Random) -> Any:
    """A cell of the dictionary's entry of this number: two entries are never the same."""
    if column.kind == "text":
        return f"{column.name} {number} of machine {machine.salt}"
    return None if column.ids else _cell(machine, column, START_US, drawn)


def _cell(machine: Machine, column: schema.Column, at_us: int, drawn: random.Random) -> Any:
    make: dict[str | None, Callable[[], Any]] = {
        "cpu": lambda: drawn.choice(CPUS),
        "gpu": lambda: drawn.randrange(2),
        "pid": lambda: 100 + drawn.randrange(8),
        "ticks": lambda: drawn.randrange(1, 10_000),
    }
    if column.name == "cpus":
        return "0-1"
    if column.meaning in make:
        return make[column.meaning]()
    if column.kind == "time":
        return at_us + drawn.randrange(SECOND)
    if column.kind == "ints":
        return tuple(drawn.randrange(1000) for _ in range(drawn.randrange(6)))
    if column.kind == "text":
        word = f"{column.name} {drawn.randrange(5)} of machine {machine.salt}"
        return json.dumps({"said": word}) if column.name == "fields" else word
    return drawn.randrange(1000)


def _read(column: schema.Column, cell: Any, meant: dict[str, list[tuple[Any, ...]]], table: schema.Table) -> Any:
    """A cell with what its ids stand for; the own id of a dictionary is nothing that it says."""
    if cell is None or not column.ids or column.name == table.own_id:
        return cell
    known = meant[column.ids]
    return tuple(known[each] for each in cell) if column.kind == "ints" else known[cell]


# --- as a reader has it ----------------------------------------------------------------------------------------------


def told(recording: Recording, start_us: int | None = None, end_us: int | None = None) -> Told:
    """What a recording says, by nothing but the schema. An id that nothing explains is "lost"."""
    meant: dict[str, dict[int, tuple[Any, ...]]] = {}
    for table in reversed(schema.DICTIONARIES):
        rows = _plain(recording, table, start_us, end_us)
        meant[str(table.explains)] = {row[0]: _named(table, row, meant)[1:] for row in rows}
    return {
        table.name: [_named(table, row, meant) for row in _plain(recording, table, start_us, end_us)]
        for table in schema.DATA
    }


def _named(table: schema.Table, row: tuple[Any, ...], meant: dict[str, dict[int, tuple[Any, ...]]]) -> tuple[Any, ...]:
    cells: list[Any] = []
    for column, cell in zip(table.columns, row, strict=True):
        if cell is None or not column.ids or column.name == table.own_id:
            cells.append(tuple(cell) if isinstance(cell, list) else cell)
        elif column.kind == "ints":
            cells.append(tuple(meant[column.ids].get(each, "lost") for each in cell))
        else:
            cells.append(meant[column.ids].get(cell, "lost"))
    return tuple(cells)


def _plain(
    recording: Recording, table: schema.Table, start_us: int | None, end_us: int | None
) -> list[tuple[Any, ...]]:

    rows = columns.records(recording.table(table.name, start_us, end_us))
    return [tuple(row.values()) for row in rows]


def in_window(said: Told, start_us: int, end_us: int) -> Told:
    times = {table.name: table.names.index(str(table.time_column)) for table in schema.DATA}
    return {name: [row for row in rows if start_us <= row[times[name]] < end_us] for name, rows in said.items()}
