"""Half an hour of two busy cores: real seconds of healthy loads, recorded once and kept as fixtures, laid end to end.

What is made up lacks what costs most: thousands of short processes, stacks that are never seen again, symbols of real
programs. Segments are written as a recorder writes them, two minutes each, with a dictionary of their own; the older
half is compacted, as it would be on a node. Pids are raised with every turn, because on a real node they are other
processes.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import generate
from zombiescope.store import columns, layout, schema
from zombiescope.store.batch import Batch
from zombiescope.store.compact import compact
from zombiescope.store.reader import Recording, open_recording
from zombiescope.store.segment_writer import SegmentWriter

FIXTURES = Path(__file__).parents[1] / "tests" / "fixtures" / "backgrounds"
START_US = generate.START_US
SECOND_US = 1_000_000
SECONDS = 1800
TURN_S = 30
"""So long each load goes on before the next one has its turn."""
SEGMENT_S = 120
PIDS = 20_000
NODE = "busy"
VERSION = 1
_LEFT_OUT = {"events", "gaps", "cost"}

Row = tuple[Any, ...]


def cached(*, compacted: bool) -> Path:
    """The recording's directory; made when it is not there."""
    place = generate.cache() / f"half-hour-{'half' if compacted else 'log'}-v{VERSION}"
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True)
        _make(place, compacted=compacted)
        (place / "complete").touch()
    return place


def _make(place: Path, *, compacted: bool) -> None:
    node_dir = place / f"{layout.NODE_FOLDER}{NODE}"
    log = node_dir / layout.LOG_FOLDER
    log.mkdir(parents=True)
    loads = []
    for path in sorted(FIXTURES.glob("*.zscope")):
        with open_recording(path) as recording:
            loads.append(_Load(recording))
            about = recording.node
    layout.write_synced(
        node_dir / layout.NODE_FILE, json.dumps({**about, "node": NODE, "started_us": START_US}).encode()
    )
    writer = SegmentWriter(log)
    for first in range(0, SECONDS, SEGMENT_S):
        _segment(writer, loads, first)
    if compacted:
        names = sorted(path.name for path in log.iterdir())
        compact(node_dir, names[: len(names) // 2])


def _segment(writer: SegmentWriter, loads: Sequence[_Load], first: int) -> None:
    began_us = START_US + first * SECOND_US
    header = {
        "format": schema.FORMAT, "node": NODE, "boot": generate.BOOT, "hz": 99, "event": "cpu-clock",
        "seq": first // SEGMENT_S, "interval_us": SECOND_US, "recorder_started_us": START_US, "started_us": began_us,
    }  # fmt: skip
    writer.start(began_us, header)
    ids, batch = _Ids(), Batch()
    for second in range(first, min(first + SEGMENT_S, SECONDS)):
        turn = second // TURN_S
        load = loads[turn % len(loads)]
        for table, rows in load.second(second % TURN_S, START_US + second * SECOND_US):
            batch.extend(table, [ids.own(table, row, load, turn, batch) for row in rows])
        end_us = START_US + (second + 1) * SECOND_US
        closes = second == min(first + SEGMENT_S, SECONDS) - 1
        writer.frame(end_us, (end_us - START_US) * 1000, batch.take_blocks(end_us), closes=closes)


class _Load:
    """The rows of one recording, second by second, and its dictionaries."""

    def __init__(self, recording: Recording) -> None:
        self._start_us = recording.start_us
        self._seconds: dict[int, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
        self.known: dict[str, dict[int, Row]] = {}
        for table in schema.TABLES:
            rows = [tuple(row.values()) for row in columns.records(recording.table(table.name))]
            if table.explains is not None:
                self.known[table.explains] = {row[0]: row for row in rows}
            elif table.name not in _LEFT_OUT:
                for row in rows:
                    self._seconds[max(0, (row[0] - self._start_us - 1) // SECOND_US)][table.name].append(row)
        self._length = max(self._seconds)

    def second(self, number: int, at_us: int) -> Iterator[tuple[schema.Table, list[Row]]]:
        """The rows of one of its seconds, as if it began at another moment."""
        number %= self._length
        moved_us = at_us - (self._start_us + number * SECOND_US)
        for name, rows in self._seconds[number].items():
            yield schema.BY_NAME[name], [(row[0] + moved_us, *row[1:]) for row in rows]


class _Ids:
    """Numbers of one segment for what rows of the loads point to; what is new is written before it is used."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[tuple[object, ...], int]] = {kind: {} for kind in schema.ID_KINDS}

    def own(self, table: schema.Table, row: Row, load: _Load, turn: int, batch: Batch) -> Row:
        values = list(row)
        for column in table.id_columns:
            at = table.names.index(column.name)
            if values[at] is not None:
                values[at] = self._number(str(column.ids), values[at], load, turn, batch)
        return tuple(values)

    def _number(self, kind: str, number: int, load: _Load, turn: int, batch: Batch) -> int:
        key = (id(load), number, turn if kind == "task" else None)
        numbers = self._numbers[kind]
        if key not in numbers:
            numbers[key] = len(numbers)
            batch.add(_DICTIONARY[kind], self._row(kind, load.known[kind][number], load, turn, batch, numbers[key]))
        return numbers[key]

    def _row(self, kind: str, row: Row, load: _Load, turn: int, batch: Batch, number: int) -> Row:
        if kind == "stack":
            return number, [self._number("frame", frame, load, turn, batch) for frame in row[1] or ()]
        if kind == "task":
            named = dict(zip(schema.TASKS.names, row, strict=True))
            moved = {name: named[name] + turn * PIDS for name in ("pid", "tid", "ppid") if (named[name] or 0) > 2}
            return (number, *list({**named, **moved}.values())[1:])
        return (number, *row[1:])


_DICTIONARY = {str(table.explains): table for table in schema.DICTIONARIES}
