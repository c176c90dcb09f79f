"""Ids that are unique over all parts of an open recording.

On disk an id means something within its part only. Each part gets a range of numbers when it is first used,
as long as its own ids reach, so the ids of a recording stay small enough to index arrays with. Nothing is
compared: the same stack in two parts has two ids. Finding that they are the same is the work of whoever
adds stacks up by name.
"""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from zombiescope.recording import columns, schema
from zombiescope.recording.part import Part

_HOLES = 2
_SMALL = 100_000
"""Ids that may be unused: an array that is indexed with them must not become much larger than what is in it."""


class UniqueIds:
    def __init__(self) -> None:
        self._bases: dict[tuple[str, str], int] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._next: dict[str, int] = dict.fromkeys(columns.DICTIONARIES.values(), 0)

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
        for kind in columns.ID_KINDS.get(spec.name, ()):
            if kind in rows.column_names:
                rows = _replace(rows, kind, self._shift(part, kind, rows.column(kind)))
        if spec is schema.STACKS and "frames" in rows.column_names:
            rows = _replace(rows, "frames", self._shift_lists(part, rows.column("frames")))
        return rows

    def base(self, part: Part, kind: str) -> int:
        """What is added to an id of the part."""
        if (part.name, kind) not in self._bases:
            for every, count in part.ids().items():
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

    def _shift_lists(self, part: Part, stacks: pa.ChunkedArray) -> pa.ChunkedArray:
        return pa.chunked_array([self._shift_chunk(part, chunk) for chunk in stacks.chunks], stacks.type)

    def _shift_chunk(self, part: Part, chunk: pa.Array) -> pa.Array:
        offsets, elements = columns.list_parts(chunk)
        shifted = self._shift(part, "frame", elements)
        flat = shifted.combine_chunks() if isinstance(shifted, pa.ChunkedArray) else shifted
        return columns.lists_array(offsets, flat, columns.present(chunk))


def _replace(rows: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    at = rows.column_names.index(name)
    return rows.set_column(at, rows.schema.field(at), column)


def relabel(rows: pa.Table, kind: str, new_ids: columns.Ints) -> pa.Table:
    """The rows with ids replaced by new_ids[id]; an id that has no new one becomes null."""
    moved = columns.look_up(new_ids, rows.column(kind))
    return _replace(rows, kind, columns.ints_array(moved, moved >= 0, pa.int32()))
