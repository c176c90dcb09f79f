"""Several parts become one: one id for a stack, a frame, a task or a series that any number of them knew.

What makes two of them the same is everything that their rows say. Memory is bounded by one source part, one
row group per table, and the dictionaries of the part that is being made; whoever adds parts looks at
`stacks` and `samples` and stops.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from zombiescope.store import columns, schema, steps
from zombiescope.store.columns import Ints
from zombiescope.store.ids import relabel, used_ids
from zombiescope.store.layout import TableFacts
from zombiescope.store.parquet import TableWriter
from zombiescope.store.part import Part
from zombiescope.store.summary import Summary


class Dictionary:
    """Rows of one dictionary table, each kept once."""

    def __init__(self, table: schema.Table) -> None:
        self.table = table
        self._own = str(table.own_id)
        self._others = [name for name in table.names if name != self._own]
        self._ids: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def merge(self, rows: pa.Table, new_ids: Mapping[str, Ints]) -> Ints:
        """Where each id of the rows went; -1 for ids that none of them explains. `new_ids`: of the dictionaries that
        it uses itself."""
        rows = relabel(rows, self.table, new_ids)
        contents = list(zip(*(_hashable(rows.column(name)) for name in self._others), strict=True))
        return _new_ids(rows.column(self._own), [self._id(content) for content in contents])

    def _id(self, content: Hashable) -> int:
        return self._ids.setdefault(content, len(self._ids))

    def rows(self) -> pa.Table:
        kinds = {column.name: column for column in self.table.columns}
        values: list[Any] = list(zip(*self._ids, strict=True)) or [[] for _ in self._others]
        arrays = {self._own: columns.ints_array(np.arange(len(self)), None, pa.int32())}
        for name, column in zip(self._others, values, strict=True):
            pieces = [(list(column), len(self))]
            arrays[name] = columns.arrow_array(kinds[name].kind, columns.arrow_type(kinds[name]), pieces)
        target = columns.arrow_schema(self.table)
        return pa.Table.from_arrays([arrays[name] for name in target.names], schema=target)


class MergedStacks:
    """The stacks, by the frame ids of the part being made; as bytes, for there may be very many."""

    table = schema.STACKS

    def __init__(self) -> None:
        self._ids: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def merge(self, rows: pa.Table, new_ids: Mapping[str, Ints]) -> Ints:
        targets: list[int] = []
        for chunk in rows.column("frames").chunks:
            offsets, elements = columns.list_parts(chunk)
            frames = columns.look_up(new_ids["frame"], elements).astype(np.int32).tobytes()
            ends = (offsets * 4).tolist()
            targets += [self._id(frames[start:end]) for start, end in pairwise(ends)]
        return _new_ids(rows.column("stack"), targets)

    def _id(self, frames: bytes) -> int:
        return self._ids.setdefault(frames, len(self._ids))

    def rows(self) -> pa.Table:
        offsets = np.zeros(len(self) + 1, np.int32)
        np.cumsum(np.fromiter((len(frames) // 4 for frames in self._ids), np.int32, len(self)), out=offsets[1:])
        elements = np.frombuffer(b"".join(self._ids), np.int32).astype(np.int64)
        ids = columns.ints_array(np.arange(len(self)), None, pa.int32())
        lists = columns.lists_array(offsets, columns.ints_array(elements, elements >= 0, pa.int32()))
        return pa.Table.from_arrays([ids, lists], schema=columns.arrow_schema(self.table))


def _hashable(column: pa.ChunkedArray) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return [tuple(each) if isinstance(each, list) else each for each in values]


def _new_ids(old: pa.ChunkedArray, new: list[int]) -> Ints:
    ids = columns.numbers(old)
    known = (ids >= 0) & columns.present(old)
    moved = np.full(int(ids.max()) + 1 if len(ids) else 0, -1, np.int64)
    moved[ids[known]] = np.array(new, np.int64)[known]
    return moved


class PartMerger:
    """Writes one part of Parquet files from any number of source parts."""

    def __init__(self, part: str, paths: Callable[[str], Path]) -> None:
        """`paths` says where the file of a table is written."""
        self.part = part
        self._paths = paths
        self._writers: dict[str, TableWriter] = {}
        self._stacks = MergedStacks()
        self._dictionaries: dict[str, Dictionary | MergedStacks] = {
            str(table.explains): self._stacks if table is schema.STACKS else Dictionary(table)
            for table in schema.DICTIONARIES
        }
        self._summary = Summary()
        self.samples = 0

    @property
    def stacks(self) -> int:
        return len(self._stacks)

    def add(
        self,
        source: Part,
        start_us: int | None = None,
        end_us: int | None = None,
        settled_us: int | None = None,
    ) -> None:
        """The rows of a source in the window. No later source may have a row older than settled_us."""
        rows = {}
        for table in schema.DATA:
            steps.step(f"reading {table.name}")
            rows[table] = source.rows(table, start_us, end_us, None)
        self.samples += len(rows[schema.SAMPLES])
        cut = start_us is not None or end_us is not None
        new_ids = self._merge_dictionaries(source, rows if cut else None)
        for table in schema.DATA:
            made = relabel(rows.pop(table), table, new_ids)
            if table is schema.SAMPLES:
                self._summary.add(made)
            if len(made):
                steps.step(f"writing {table.name}")
                self._writer(table).add(made, settled_us)

    def add_rows(self, table: schema.Table, rows: pa.Table) -> None:
        """Rows of a table without ids."""
        if table.id_columns:
            raise ValueError(f"the ids of {table.name} would mean something else in another part")
        if len(rows):
            self._writer(table).add(rows)

    def add_gauges(self, source: Part, before_us: int) -> None:
        """The last value of each gauge of a source before a moment."""
        series = source.rows(schema.SERIES, None, None, None)
        gauges = _among_texts(series, "kind", "gauge")
        counters = source.rows(schema.COUNTERS, None, before_us, None)
        counters = _among(counters, "series", columns.numbers(gauges.column("series")))
        counters = columns.in_order_of_time(counters, "time")
        ids = columns.numbers(counters.column("series"))
        _, from_the_end = np.unique(ids[::-1], return_index=True)
        last = columns.take(counters, np.sort(len(ids) - 1 - from_the_end))
        if len(last):
            new_ids = {"series": self._dictionaries["series"].merge(gauges, {})}
            self._writer(schema.COUNTERS).add(relabel(last, schema.COUNTERS, new_ids))

    def _merge_dictionaries(self, source: Part, used_by: Mapping[schema.Table, pa.Table] | None) -> dict[str, Ints]:
        """Ids of this part for those of the source; if rows are given, only for those that they use."""
        found: dict[schema.Table, pa.Table] = {}
        for table in schema.DICTIONARIES:
            rows = source.rows(table, None, None, None)
            if used_by is not None:
                used = used_ids([*used_by.items(), *found.items()], str(table.explains))
                rows = _among(rows, str(table.own_id), used)
            found[table] = rows
        new_ids: dict[str, Ints] = {}
        for table in reversed(schema.DICTIONARIES):  # what a dictionary uses comes before it
            kind = str(table.explains)
            new_ids[kind] = self._dictionaries[kind].merge(found[table], new_ids)
        return new_ids

    def _writer(self, table: schema.Table) -> TableWriter:
        if table.name not in self._writers:
            self._writers[table.name] = TableWriter(table, self.part, self._paths(table.name))
        return self._writers[table.name]

    def finish(self) -> tuple[dict[str, TableFacts], dict[str, int]]:
        """Writes what is left. Facts of each table that has rows, and how many ids there are of each kind."""
        for dictionary in self._dictionaries.values():
            if len(dictionary):
                self._writer(dictionary.table).add(dictionary.rows())
        for table, rows in self._summary.tables().items():
            self._writer(table).add(rows)
        facts = {}
        for name, writer in self._writers.items():
            steps.step(f"closing {name}")
            facts[name] = writer.close()
        ids = {kind: len(dictionary) for kind, dictionary in self._dictionaries.items()}
        return facts, ids

    def abandon(self) -> None:
        for writer in self._writers.values():
            writer.abandon()


def _among_texts(rows: pa.Table, name: str, wanted: str) -> pa.Table:
    values = columns.texts(rows.column(name))
    return columns.take(rows, np.array([row for row, value in enumerate(values) if value == wanted], np.int64))


def _among(rows: pa.Table, name: str, wanted: Ints) -> pa.Table:
    """The rows with one of these ids."""
    return columns.take(rows, np.flatnonzero(np.isin(columns.numbers(rows.column(name)), wanted)))
