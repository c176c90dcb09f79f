"""Processes of distributed jobs in the recording: rows of `ranks`, when one is first seen and when it ends.

Who is a rank is found by the reader of Python stacks (python_reader.py), which may hang and is not the loop. Here its
words are checked and kept; once in AGAIN_US each known process is looked at by its start time (15 us), at most MOST of
them. Every segment says the living again.
"""

from __future__ import annotations

from typing import Any

from zombiescope.kernel import process
from zombiescope.store import schema
from zombiescope.store.batch import Batch

MOST = 64
AGAIN_US = 2_000_000
_MOST_TEXT = 4096
_NAMES = schema.RANKS.names
_NUMBERS = {column.name for column in schema.RANKS.columns if column.kind == "int"}


class RankTracker:
    def __init__(self, batch: Batch, root: str = "/") -> None:
        self._batch = batch
        self._root = root
        self._known: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._look_us = 0

    def found(self, said: dict[str, Any], now_us: int) -> None:
        """The reader saw a process of a job."""
        row = tuple(_cell(name, said.get(name)) for name in _NAMES[1:-1])
        pid, start_ticks = row[0], row[1]
        if pid is None or start_ticks is None or (pid, start_ticks) in self._known or len(self._known) >= MOST:
            return
        self._known[pid, start_ticks] = row
        self._batch.add(schema.RANKS, (now_us, *row, 0))

    def second(self, now_us: int) -> None:
        if now_us - self._look_us < AGAIN_US:
            return
        self._look_us = now_us
        for (pid, start_ticks), row in list(self._known.items()):
            stat = process.read_stat(pid, self._root)
            if stat is None or stat.start_time_ticks != start_ticks or stat.state in "ZX":
                del self._known[pid, start_ticks]
                self._batch.add(schema.RANKS, (now_us, *row, 1))

    @property
    def pids(self) -> list[int]:
        """The living ones, those with a rank first."""
        rank = _NAMES.index("rank") - 1
        ordered = sorted(self._known.items(), key=lambda each: (each[1][rank] is None, each[1][rank] or 0))
        return [pid for (pid, _), _ in ordered]

    def restart(self, now_us: int) -> None:
        """A new segment says who is there."""
        for row in self._known.values():
            self._batch.add(schema.RANKS, (now_us, *row, 0))


def _cell(name: str, value: Any) -> Any:
    if name in _NUMBERS:
        return value if type(value) is int and 0 <= value < 1 << 53 else None
    return value[:_MOST_TEXT] if isinstance(value, str) else None
