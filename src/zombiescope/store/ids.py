"""Ids that are unique over all parts of an open recording.

On disk an id means something within its part only. Each part gets a range of numbers when it is first used,
as long as its own ids reach, so the ids of a recording stay small enough to index arrays with. Nothing is
compared: the same stack in two parts has two ids. Finding that they are the same is the work of whoever
adds stacks up by name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
import pyarrow as pa

from zombiescope.store import columns, schema
from zombiescope.store.part import Part

_HOLES = 2
_SMALL = 100_000
"""Ids that may be unused: an array that is indexed with them must not become much larger than what is in it."""


class UniqueIds:
    def __init__(self) -> None:
        self._bases: dict[tuple[str, str], int] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._next: dict[str, int] = dict.fromkeys(schema.ID_KINDS, 0)

    def keep(self, names: Collection[str]) -> None:
        """Only parts of these names keep their ids. Where the others leave large holes, nobody does."""
        kept = {key: base for key, base in self._bases.items() if key[0] in names}
        self._bases, before = kept, self._counts
        self._counts = {key: before[key] for key in kept}
        for kind in self._next:
            ends = [base + self._counts[key] for key, base in kept.items() if key[1] == kind]
            held = sum(count for key, count in self._counts.items() if key[1] == kind)
            if max(ends, default=0) > _HOLES * held + _SMALL:
                self.__init__()  # type: ignore[misc]  # as new
                return
            self._next[kind] = max(ends, default=0)

    def apply(self, part: Part, spec: schema.Table, rows: pa.Table) -> pa.Table:
        """The same rows with every id moved into the part's range."""
        for column in spec.id_columns:
            if column.ids and column.name in rows.column_names:
                shift = self._shift_lists if column.kind == "ints" else self._shift
                rows = _replace(rows, column.name, shift(part, column.ids, rows.column(column.name)))
        return rows

    def base(self, part: Part, kind: str) -> int:
        """What is added to an id of the part."""
        if (part.name, kind) not in self._bases:
            for every, count in part.ids().items():
                if every not in self._next:  # a newer version's
                    continue
                self._bases[part.name, every] = self._next[every]
                self._counts[part.name, every] = count
                self._next[every] += count
        return self._bases[part.name, kind]

    def _shift(self, part: Part, kind: str, ids: pa.ChunkedArray | pa.Array) -> pa.Array | pa.ChunkedArray:
        """Ids that no row of the part explains become null rather than another part's."""
        base, count = self.base(part, kind), part.ids().get(kind, 0)
        if (shifted := columns.shifted(ids, base, count)) is not None:
            return shifted
        local = columns.numbers(ids)
        known = (local >= 0) & (local < count) & columns.present(ids)
        return columns.ints_array(local + base, known, pa.int32())

    def _shift_lists(self, part: Part, kind: str, lists: pa.ChunkedArray) -> pa.ChunkedArray:
        return pa.chunked_array([self._shift_chunk(part, kind, chunk) for chunk in lists.chunks], lists.type)

    def _shift_chunk(self, part: Part, kind: str, chunk: pa.Array) -> pa.Array:
        offsets, elements = columns.list_parts(chunk)
        shifted = self._shift(part, kind, elements)
        flat = shifted.combine_chunks() if isinstance(shifted, pa.ChunkedArray) else shifted
        return columns.lists_array(offsets, flat, columns.present(chunk))


def _replace(rows: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    at = rows.column_names.index(name)
    return rows.set_column(at, rows.schema.field(at), column)


def relabel(rows: pa.Table, spec: schema.Table, new_ids: Mapping[str, columns.Ints]) -> pa.Table:
    """The rows with every id replaced by new_ids[kind][id]; an id that has no new one becomes null."""
    for column in spec.id_columns:
        if column.ids and column.name != spec.own_id:
            made = _relabelled_lists if column.kind == "ints" else _relabelled
            rows = _replace(rows, column.name, made(new_ids[column.ids], rows.column(column.name)))
    return rows


def _relabelled(new_ids: columns.Ints, ids: pa.ChunkedArray | pa.Array) -> pa.Array:
    moved = columns.look_up(new_ids, ids)
    return columns.ints_array(moved, moved >= 0, pa.int32())


def _relabelled_lists(new_ids: columns.Ints, lists: pa.ChunkedArray) -> pa.ChunkedArray:
    made = []
    for chunk in lists.chunks:
        offsets, elements = columns.list_parts(chunk)
        made.append(columns.lists_array(offsets, _relabelled(new_ids, elements), columns.present(chunk)))
    return pa.chunked_array(made, lists.type)


def used_ids(tables: Iterable[tuple[schema.Table, pa.Table]], kind: str) -> columns.Ints:
    """The ids of a kind that some rows use, each once."""
    found = [np.zeros(0, np.int64)]
    for spec, rows in tables:
        for column in spec.id_columns:
            if column.ids == kind and column.name != spec.own_id:
                held = rows.column(column.name)
                pieces = [columns.list_parts(chunk)[1] for chunk in held.chunks] if column.kind == "ints" else [held]
                found += [columns.numbers(piece)[columns.present(piece)] for piece in pieces]
    return np.unique(np.concatenate(found))
