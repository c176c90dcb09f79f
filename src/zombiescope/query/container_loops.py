"""Containers that are started for ever: what sets a crash loop apart from a queue of jobs.

in place   one id, or one container of one pod, is started again and again: a restart policy does that, whatever the
           exit code was, and a queue of jobs never does
failing    new ids of one family, nearly all of which fail, more often than once in five minutes, which is as slow as
           kubelet's back-off gets; the pods of a healthy CronJob and CI jobs end with 0
quick      new ids of one family more often than cron can start them, and nobody saw how they ended, or all had one
           name. It may be a queue of short jobs, so it is worth knowing and no more
"""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from zombiescope.query.container_families import Family

LoopKind = Literal["in place", "failing", "quick"]

LEAST_IN_PLACE = 3
"""Starts of one place in a window."""
SO_FAR = 5
"""Or a single one, when the runtime has counted so many restarts: back-off makes them rare."""
LEAST_FAILED = 3
LEAST_NEW = 5
"""Ids of a family."""
FAILING = 0.8
"""Of those whose exit code is known."""
FAILING_PER_HOUR = 12.0
QUICK_PER_HOUR = 120.0
"""Cron starts nothing more often than once a minute; twice that is no cron job that is late."""


@dataclass(frozen=True, slots=True)
class Loop:
    kind: LoopKind
    family: Family

    @property
    def is_certain(self) -> bool:
        return self.kind != "quick"

    def text(self) -> str:
        """What happened, as a sentence without its end."""
        return _in_place(self.family) if self.kind == "in place" else _anew(self.family)


def loops(families: Iterable[Family]) -> list[Loop]:
    """Those that are certain first, then those that were started most."""
    found = [Loop(kind, family) for family in families if (kind := loop_kind(family)) is not None]
    return sorted(found, key=lambda loop: (not loop.is_certain, -loop.family.starts))


def loop_kind(family: Family) -> LoopKind | None:
    again = family.most_starts
    if again >= LEAST_IN_PLACE or (again and (family.restarts or 0) >= SO_FAR):
        return "in place"
    rate = family.per_hour or 0.0
    ended = family.failed + family.succeeded
    if family.starts < LEAST_NEW:
        return None
    if family.failed >= max(LEAST_FAILED, FAILING * ended) and rate >= FAILING_PER_HOUR:
        return "failing"
    unseen = family.exited > 0 and ended == 0
    if rate >= QUICK_PER_HOUR and family.exited and (unseen or family.kind == "name"):
        return "quick"
    return None


# --- in words --------------------------------------------------------------------------------------------------------


def _in_place(family: Family) -> str:
    so_far = "" if family.restarts is None else f", {family.restarts:,} restarts so far"
    last = "" if family.last_code is None else f", last exit {exit_words(family.last_code)}"
    return f"{family.place} was started {_times(family.most_starts)}{_rhythm(family)}{so_far}{last}"


def _anew(family: Family) -> str:
    by = requester_words(family.requester, family.requester_unit)
    asked = f" by {by}" if by else ""
    failed = f", {family.failed:,} failed" if family.failed else ""
    last = f", the last with {exit_words(family.last_code)}" if family.failed and family.last_code else ""
    return f"{family.starts:,} containers of {family.place} were started{asked}{_rhythm(family)}{failed}{last}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def _rhythm(family: Family) -> str:
    """ ", one every 3 s"."""
    if not family.per_hour:
        return ""
    seconds = 3600 / family.per_hour
    every = f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    return f", one every {every}"


def requester_words(comm: str | None, unit: str | None) -> str | None:
    """Who asked for it: "agent-loop (ecs.service)"."""
    return f"{comm} ({unit})" if comm and unit else comm or unit


def exit_words(code: int) -> str:
    """An exit code as a person reads it: above 128 a signal ended it."""
    try:
        return f"{code} ({signal.Signals(code - 128).name})"
    except ValueError:
        return str(code)
