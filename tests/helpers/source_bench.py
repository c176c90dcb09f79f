"""A source of the recorder, alone: opened on a tree of files, read tick by tick, with what it wrote in lists."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from zombiescope.recorder.source import Context, Source, SourceReader
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.tick import Tick
from zombiescope.store import schema
from zombiescope.store.batch import Batch

S = TypeVar("S", bound=Source)
Written = tuple[str, str, str | None, int]


class SourceBench(Generic[S]):
    """`counts` and `gauges`: source, name, key and value; what the framework adds of its own is left out of them."""

    def __init__(self, kind: type[S], root: Path, leaves: Mapping[str, str] | None = None) -> None:
        self.batch, self.sources = Batch(), Sources()
        self.counts: list[Written] = []
        self.gauges: list[Written] = []
        self.costs: list[Written] = []
        context = Context(self.batch, self._count, self._gauge, lambda: leaves or {}, str(root))
        self.source = kind(context)
        self._reader = SourceReader(self.source, self.sources)

    def _count(self, _: int, source: str, name: str, key: str | None, added: int) -> None:
        (self.costs if source == "recorder" else self.counts).append((source, name, key, added))

    def _gauge(self, _: int, source: str, name: str, key: str | None, value: int) -> None:
        self.gauges.append((source, name, key, value))

    def tick(self, second: int) -> None:
        self._reader.tick(Tick(second * 10**9, second * 1_000_000, 1_000_000, online=(0,)))

    def rows(self, table: schema.Table) -> list[tuple[Any, ...]]:
        return list(self.batch._rows.get(table.number, []))

    @property
    def missing(self) -> list[tuple[str, str, str]]:
        return [(one.source, one.why, one.grant) for one in self.sources.missing]
