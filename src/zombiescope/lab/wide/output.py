"""Writes the wide node as its recorder would have: log segments, a frame for each tick, and node.json."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from zombiescope.lab.wide.axis import NULL
from zombiescope.store import layout, schema
from zombiescope.store.columns import Ints
from zombiescope.store.log import encode_columns
from zombiescope.store.segment_writer import SegmentWriter

SEGMENT_US = 120_000_000


@dataclass(frozen=True, slots=True)
class Lists:
    """A column of lists: how long each is, and all their elements."""

    lengths: Ints
    flat: Ints

    def take(self, places: Ints) -> Lists:
        ends = np.cumsum(self.lengths)
        lengths = self.lengths[places]
        begin = (ends - self.lengths)[places] - np.cumsum(lengths) + lengths
        return Lists(lengths, self.flat[np.repeat(begin, lengths) + np.arange(int(lengths.sum()))])


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one table, and the tick with which each is written. A column is numbers, texts or lists."""

    table: schema.Table
    tick: Ints
    columns: Sequence[Any]

    def frames(self, first: int, last: int) -> list[tuple[int, list[Any]]]:
        """How many rows each tick of a segment has, and their columns."""
        order = np.argsort(self.tick, kind="stable")
        bounds = np.searchsorted(self.tick[order], np.arange(first, last + 1)).tolist()
        sorted_ = [_take(column, order) for column in self.columns]
        return [
            (end - begin, [_encodable(column, begin, end) for column in sorted_]) for begin, end in pairwise(bounds)
        ]


def rows_of(table: schema.Table, tick: Sequence[int], rows: Sequence[Sequence[Any]]) -> Rows:
    """Few rows, each in the order of the table's columns."""
    columns = list(zip(*rows, strict=True)) or [()] * len(table.columns)
    return Rows(table, np.array(tick, np.int64), columns)


def _take(column: Any, order: Ints) -> Any:
    if isinstance(column, Lists):
        return column.take(order)
    return column[order] if isinstance(column, np.ndarray) else [column[place] for place in order.tolist()]


def _encodable(column: Any, begin: int, end: int) -> Any:
    if isinstance(column, Lists):
        first, last = int(column.lengths[:begin].sum()), int(column.lengths[:end].sum())
        return _array(column.lengths[begin:end]), _array(column.flat[first:last])
    if not isinstance(column, np.ndarray):
        return column[begin:end]
    values = column[begin:end]
    if not (values == NULL).any():
        return _array(values)
    return [None if value == NULL else value for value in values.tolist()]


def _array(values: Ints) -> array[int]:
    return array("q", np.ascontiguousarray(values, np.int64).tobytes())


class NodeWriter:
    """Writes one node into a directory. Raises OSError."""

    def __init__(self, directory: Path, node: dict[str, Any], boot_us: int | None) -> None:
        self.path = directory / f"{layout.NODE_FOLDER}{node['node']}"
        log = self.path / layout.LOG_FOLDER.rstrip("/")
        log.mkdir(parents=True)
        layout.write_synced(self.path / layout.NODE_FILE, json.dumps(node, indent=1).encode() + b"\n")
        self._writer = SegmentWriter(log)
        self._node, self._boot_us = node, boot_us
        self._sequence = 0

    def segment(self, begins_us: int, ends_us: Ints, first: int, tables: Sequence[Rows]) -> None:
        """A frame for each of some ticks that end at `ends_us`; `first` is the first one's number."""
        self._writer.start(begins_us, self._header(begins_us))
        self._sequence += 1
        frames = [(rows.table, rows.frames(first, first + len(ends_us))) for rows in tables]
        for place, wall_us in enumerate(ends_us.tolist()):
            blocks = [
                encode_columns(table, count, columns, wall_us)
                for table, by_tick in frames
                for count, columns in by_tick[place : place + 1]
                if count
            ]
            self._writer.frame(wall_us, self._monotonic_ns(wall_us), blocks, closes=place == len(ends_us) - 1)
        if self._writer.failing is not None:
            raise OSError(self._writer.failing)

    def _monotonic_ns(self, wall_us: int) -> int:
        return (wall_us - (self._boot_us or 0)) * 1000

    def _header(self, begins_us: int) -> dict[str, Any]:
        node = self._node
        return {
            "format": schema.FORMAT,
            **{name: node.get(name) for name in ("node", "boot", "hz", "event")},
            "seq": self._sequence,
            "interval_us": round(float(node.get("interval_s") or 1) * 1e6),
            "recorder_started_us": node.get("started_us") or begins_us,
            "started_us": begins_us,
        }
