"""The tables of a recording by name: `recording.tables["cores"]`, or `recording.tables.cores` with completion.

A table is read when it is looked at, whole; for a window use `recording.table(name, start_us, end_us)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from zombiescope.notebook import html
from zombiescope.store import schema

if TYPE_CHECKING:
    import pyarrow as pa

    from zombiescope.store.reader import Recording


class Tables(Mapping[str, "pa.Table"]):
    """Name -> Arrow table; a table that this node had nothing for has no rows."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def __getitem__(self, name: str) -> pa.Table:
        return self._recording.table(name)

    def __iter__(self) -> Iterator[str]:
        return iter(schema.BY_NAME)

    def __len__(self) -> int:
        return len(schema.BY_NAME)

    def __contains__(self, name: object) -> bool:
        return name in schema.BY_NAME

    def __getattr__(self, name: str) -> pa.Table:
        if name.startswith("_") or name not in schema.BY_NAME:
            raise AttributeError(f"there is no table {name!r}; there are {', '.join(self)}")
        return self[name]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    @property
    def rows(self) -> dict[str, int]:
        """How many there are in each, without reading them; rollups, which have no count, are left out."""
        parts = self._recording.parts
        return {spec.name: sum(part.count(spec) for part in parts) for spec in schema.TABLES}

    def __repr__(self) -> str:
        width = max(map(len, self))
        lines = [f"{name:<{width}}  {count:>12,}  {columns}" for name, count, columns in self._listed()]
        return "\n".join([f"{'table':<{width}}  {'rows':>12}  columns", *lines])

    def _repr_html_(self) -> str:
        return html.table(((name, f"{count:,}", columns) for name, count, columns in self._listed()),
                          ("table", "rows", "columns"))  # fmt: skip

    def _listed(self) -> list[tuple[str, int, str]]:
        return [(name, count, ", ".join(schema.BY_NAME[name].names)) for name, count in self.rows.items() if count]
