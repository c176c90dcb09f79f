"""What a source is: one file in recorder/sources/ whose class reads one thing of the node and writes rows of it.

A source says its name, what has to be there for it to be read, and how often it is read. `tick` reads it and returns
why it cannot be read here, or None. The rest is the same for all sources, and done here:

    present, missing   what `tick` returns is in the list of missing sources, and its span is a row of `gaps`
    blind              a source that raises is a gap of its own (stage.py); `forget` drops what is too old to subtract
    slow               one that takes more than a millisecond of CPU time twice in a row is read every ten seconds
    cost               its CPU time is in `counters` once a minute: source "recorder", name "source_cpu_us"

A file that is in the folder is used. What may hang for ever is no such source: it is read by a process of its own
(piped_process.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import ClassVar, TypeVar

from zombiescope.recorder import sources
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.stage import Barrier, Stage
from zombiescope.recorder.tick import Tick
from zombiescope.store.batch import Batch

SLOW_NS = 1_000_000
SLOW_EVERY_S = 10.0
EARLY_S = 0.05
"""Ticks are not exactly a second apart: what is due so soon is read now."""
COST_EVERY_S = 60.0

S = TypeVar("S", bound="Source")


@dataclass(frozen=True, slots=True)
class Context:
    """What every source is given when it is opened."""

    batch: Batch
    count: Callable[[int, str, str, str | None, int], None]
    """Adds to a counter: time, source, name, key, how much was added since the last reading."""
    gauge: Callable[[int, str, str, str | None, int], None]
    """Writes a level: time, source, name, key, value."""
    leaves: Callable[[], Mapping[str, str]]
    """The memory cgroups that were sampled most in the last ten seconds, at most 128: path -> directory."""
    root: str = "/"


class Source:
    """Subclasses are the sources: one in each module of recorder/sources/."""

    name: ClassVar[str]
    """What `status` calls it."""
    grant: ClassVar[str]
    """What makes it readable where it is not."""
    every_s: ClassVar[float] = 0.0
    """Seconds between two readings; 0 reads it at every tick."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def tick(self, tick: Tick) -> str | None:
        """Reads it. Why it cannot be read; None where it was."""
        raise NotImplementedError

    def forget(self) -> None:
        """What it remembers is too old to be subtracted from."""

    def segment(self) -> None:
        """A new segment begins, in which everything that still holds has to be written again."""

    def close(self) -> None:
        """Gives back what it opened."""


@cache
def every() -> tuple[type[Source], ...]:
    """The sources there are, by name."""
    modules = [import_module(f"{sources.__name__}.{found.name}") for found in iter_modules(sources.__path__)]
    kinds = {
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Source) and kind.__module__ == module.__name__
    }
    return tuple(sorted(kinds, key=lambda kind: kind.name))


class OpenSources:
    """All sources of a recorder, opened, read and closed."""

    def __init__(self, context: Context, missing: Sources, barrier: Barrier, root: str) -> None:
        self._readers = {kind: SourceReader(_opened(kind, context, barrier, root), missing) for kind in every()}

    def one(self, kind: type[S]) -> S:
        source = self._readers[kind].source
        assert isinstance(source, kind)
        return source

    def stages(self) -> Iterator[Stage]:
        """Of a tick."""
        for reader in self._readers.values():
            yield Stage(f"{reader.source.name} (reader)", reader.tick, reader.source.forget)

    def renewals(self) -> Iterator[Stage]:
        """Of a new segment."""
        for reader in self._readers.values():
            yield Stage(f"new segment of {reader.source.name}", reader.renew, vital=True)

    def close(self) -> None:
        for reader in self._readers.values():
            reader.source.close()


def _opened(kind: type[Source], context: Context, barrier: Barrier, root: str) -> Source:
    return barrier.part(kind.name, lambda at: kind(replace(context, root=at)), root)


class SourceReader:
    """Reads a source when it is due, says what is missing, and keeps the account of its CPU time."""

    def __init__(self, source: Source, missing: Sources) -> None:
        self.source = source
        self._missing = missing
        self._due_us = 0
        self._was_slow = False
        self._spent_ns = 0
        self._account_us: int | None = None

    def tick(self, tick: Tick) -> None:
        if tick.wall_us < self._due_us:
            return
        source, began_ns = self.source, time.thread_time_ns()
        try:
            why = source.tick(tick)
        finally:
            took_ns = time.thread_time_ns() - began_ns
            self._spent_ns += took_ns
        if why is None:
            self._missing.has(source.name, tick.wall_us)
        else:
            self._missing.lacks(source.name, why, source.grant, tick.wall_us)
            source.forget()
        is_slow = took_ns > SLOW_NS
        wait_s = max(source.every_s, SLOW_EVERY_S if is_slow and self._was_slow else 0.0)
        self._was_slow = is_slow
        self._due_us = tick.wall_us + round((wait_s - EARLY_S) * 1e6) if wait_s else 0
        self._write_cost(tick.wall_us)

    def renew(self, _: Tick) -> None:
        self.source.segment()

    def _write_cost(self, now_us: int) -> None:
        if self._account_us is None:
            self._account_us = now_us
        elif now_us - self._account_us >= COST_EVERY_S * 1e6:
            spent_us, self._spent_ns = self._spent_ns // 1000, 0
            self._account_us = now_us
            self.source.context.count(now_us, "recorder", "source_cpu_us", self.source.name, spent_us)
