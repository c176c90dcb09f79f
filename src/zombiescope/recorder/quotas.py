"""Cgroups with a CPU quota: whom a quota stops does not run, so no sample leads to it.

Every cgroup that is made, or is there at the start, is asked once whether it has a quota: one small file, a moment
after it was made, because a runtime writes the quota then. Those that have one are asked in turn how often they were
stopped, one small file each (kernel/cgroup_leaf.py). Who was stopped in a fifth of its periods since its last turn is
watched for a minute: cgroups.py reads it with the leaves that were sampled.

Cost: at most sixteen cgroups are asked for a quota at a tick and sixteen for their counts, however many there are; the
turn of five hundred takes half a minute. Both lists have a bound. What does not fit is said.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TypeVar

from zombiescope.kernel import cgroup_leaf
from zombiescope.kernel.cgroup_leaf import Throttling
from zombiescope.recorder.sources import Sources
from zombiescope.store.thresholds import THROTTLED_PERIODS

Kept = TypeVar("Kept")

SOURCE = "cgroups with a CPU quota"
ASKED_A_TICK = 16
READ_A_TICK = 16
MOST_WAITING = 8_192
MOST_QUOTAS = 4_096
MOST_WATCHED = 32
SETTLED_US = 2_000_000
WATCHED_US = 60_000_000


class Quotas:
    """`directory`: the directory of a path where the cpu controller is; None where it is gone."""

    def __init__(self, directory: Callable[[str], str | None], sources: Sources) -> None:
        self._directory = directory
        self._sources = sources
        self._waiting: dict[str, int] = {}
        """Path -> when to ask; the oldest first."""
        self._limited: dict[str, Throttling | None] = {}
        """Path -> what it had counted at its last turn. The next turn is that of the first: read ones go to the end."""
        self._watched: dict[str, int] = {}

    def exists(self, path: str) -> None:
        """Found at the start."""
        self._wait(path, 0)

    def made(self, path: str, now_us: int) -> None:
        self._wait(path, now_us + SETTLED_US)

    def has(self, path: str) -> None:
        """A quota was seen there: one may be set at any time."""
        if path not in self._limited and len(self._limited) < MOST_QUOTAS:
            self._limited[path] = None

    def removed(self, path: str) -> None:
        """Also before it was asked: who makes and removes thousands keeps nobody else waiting."""
        self._waiting.pop(path, None)
        self._limited.pop(path, None)
        self._watched.pop(path, None)

    def _wait(self, path: str, due_us: int) -> None:
        if len(self._waiting) < MOST_WAITING:
            self._waiting[path] = due_us

    def watched(self, now_us: int) -> list[str]:
        """Those that were stopped lately."""
        self._watched = {path: until_us for path, until_us in self._watched.items() if until_us > now_us}
        return list(self._watched)

    def tick(self, now_us: int) -> list[str]:
        """Asks the next few. Answers those that are watched from now on."""
        self._ask(now_us)
        news = [path for path, _ in _first(self._limited, READ_A_TICK) if self._was_stopped(path)]
        fresh = [path for path in news if path not in self._watched]
        for path in news:
            if path in self._watched or len(self._watched) < MOST_WATCHED:
                self._watched[path] = now_us + WATCHED_US
        self._tell(now_us)
        return [path for path in fresh if path in self._watched]

    def _ask(self, now_us: int) -> None:
        for path, due_us in _first(self._waiting, ASKED_A_TICK):
            if due_us > now_us:
                return
            del self._waiting[path]
            directory = self._directory(path)
            if directory is not None and cgroup_leaf.has_cpu_quota(directory):
                self.has(path)

    def _was_stopped(self, path: str) -> bool:
        before = self._limited.pop(path)
        directory = self._directory(path)
        now = None if directory is None else cgroup_leaf.throttling(directory)
        if now is None:
            return False  # gone
        self._limited[path] = now
        if before is None:
            return False
        periods, stopped = now.nr_periods - before.nr_periods, now.nr_throttled - before.nr_throttled
        return stopped > 0 and stopped >= THROTTLED_PERIODS * periods

    def _tell(self, now_us: int) -> None:
        if len(self._waiting) >= MOST_WAITING or len(self._limited) >= MOST_QUOTAS:
            why = f"more than {MOST_QUOTAS:,} have one, or more than {MOST_WAITING:,} are still to be read"
            self._sources.lacks(SOURCE, why, "nothing: those that are sampled are read all the same", now_us)
        else:
            self._sources.has(SOURCE, now_us)


def _first(known: dict[str, Kept], most: int) -> list[tuple[str, Kept]]:
    return list(islice(known.items(), most))
