"""Processes of distributed jobs in the recording: rows of `ranks`, when one is first seen and when it ends.

Who is a rank is found by the reader of Python stacks (python_reader.py), which may hang and is not the loop. Here its
words are checked and kept; once in AGAIN_US each known process is looked at by its start time (15 us), at most MOST of
them. Every segment says the living again.

Once a second, where the ranks of a job wait for each other while one of them does not, or where all of them do nothing
but wait, the live diagnosis has something to look at (`suspect`). It is only a suspicion: who is late is judged by
query/late_ranks.py, from the recording.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from zombiescope.kernel import process
from zombiescope.store import schema
from zombiescope.store.batch import Batch

MOST = 64
LATE_LESS = 0.15
"""Of the looks: so much less than the others a late rank waits."""
LATE_S = 4
HANG_S = 20
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
        self.suspect: Callable[[int, str], None] = lambda _at, _what: None
        self._looks: dict[int, list[int]] = {}
        """Process -> looks since the last second, and those that saw it waiting for other ranks."""
        self._in_a_row: dict[str, int] = {}

    def found(self, said: dict[str, Any], now_us: int) -> None:
        """The reader saw a process of a job."""
        row = tuple(_cell(name, said.get(name)) for name in _NAMES[1:-1])
        pid, start_ticks = row[0], row[1]
        if pid is None or start_ticks is None or (pid, start_ticks) in self._known or len(self._known) >= MOST:
            return
        self._known[pid, start_ticks] = row
        self._batch.add(schema.RANKS, (now_us, *row, 0))

    def looked(self, pid: int, looks: int, *, waits: bool) -> None:
        """At the main thread of a rank: whether it waited for others."""
        known = self._looks.setdefault(pid, [0, 0])
        known[0] += looks
        known[1] += looks if waits else 0

    def second(self, now_us: int) -> None:
        self._suspect(now_us)
        if now_us - self._look_us < AGAIN_US:
            return
        self._look_us = now_us
        for (pid, start_ticks), row in list(self._known.items()):
            stat = process.read_stat(pid, self._root)
            if stat is None or stat.start_time_ticks != start_ticks or stat.state in "ZX":
                del self._known[pid, start_ticks]
                self._batch.add(schema.RANKS, (now_us, *row, 1))

    def _suspect(self, now_us: int) -> None:
        looks, self._looks = self._looks, {}
        found = dict(self._suspicions(looks))
        self._in_a_row = {what: self._in_a_row.get(what, 0) + 1 for what in found}
        for what, least_s in found.items():
            if self._in_a_row[what] >= least_s:
                self.suspect(now_us, what)

    def _suspicions(self, looks: dict[int, list[int]]) -> Iterator[tuple[str, int]]:
        """(what is suspicious in this second, how many seconds in a row make it so)."""
        job, kind = _NAMES.index("job") - 1, _NAMES.index("kind") - 1
        groups: dict[str, dict[int, float]] = {}
        for (pid, _), row in self._known.items():
            if looks.get(pid, (0, 0))[0]:
                groups.setdefault(f"{row[kind]} {row[job]}", {})[pid] = looks[pid][1] / looks[pid][0]
        for name, waits in groups.items():
            if len(waits) < 2:
                continue
            least, *others = sorted(waits.values())
            if others[0] - least >= LATE_LESS:
                late = min(waits, key=lambda pid: waits[pid])
                yield f"late rank {late}", LATE_S
            elif least >= 1:
                yield f"ranks of {name}", HANG_S

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
