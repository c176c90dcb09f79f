"""One part of a recording, whatever its form: a log segment, or the Parquet files of one compaction.

Both give Arrow tables with the ids as they are stored; reader.py makes them unique over all parts. Both
read as much as is whole and put the rest into `damage`; neither raises on bad data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from zombiescope.store import schema
from zombiescope.store.layout import Span


@dataclass(frozen=True, slots=True)
class Damage:
    """Something in a recording that could not be read."""

    file: str
    what: str


class Part(Protocol):
    name: str
    start_us: int
    boot: str
    damage: list[Damage]

    def touches(self, table: schema.Table, start_us: int | None, end_us: int | None) -> bool:
        """False only when no row of the table can be in the window."""

    def rows(
        self, table: schema.Table, start_us: int | None, end_us: int | None, wanted: Sequence[str] | None
    ) -> pa.Table:
        """The rows in the window. Rows of a dictionary are unique by id, the last one wins."""

    def count(self, table: schema.Table) -> int: ...

    def ids(self) -> dict[str, int]:
        """For each kind of id, one more than the largest."""

    def spans(self) -> tuple[Span, ...]: ...
