"""Hogs that did the same at the same time: the first few are examined, the others have their cause.

On a node with 192 cores that poll there are four hundred groups of symptoms in two minutes: each thread held its own
core, in the same system call, in the same seconds. Every one was examined by every pattern, came to the same cause and
became part of the same incident (`_recurring` in diagnose.py): most of what a pass cost (docs/design/0139). So a group
is not examined again that consists of nothing but a held core or a hog in the kernel, if EXAMINED_ALIKE others of the
same program with the same hottest kernel path, for nearly the same seconds, came to one cause. Whatever differs from
them in one of these, or has a symptom of anybody else, is examined.
"""

from __future__ import annotations

from typing import NamedTuple

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Cause, RuledOut
from zombiescope.diagnosis.thresholds import EXAMINED_ALIKE, SAME_SECONDS_SHARE

OWN = frozenset({"stall", "kernel_hog"})
"""Symptoms that are about the hog alone."""


class Explained(NamedTuple):
    causes: tuple[Cause, ...]
    ruled_out: tuple[RuledOut, ...]
    not_seen: str | None = None
    """Of what the kernel did."""

    @property
    def first(self) -> tuple[str, str] | None:
        """Its best cause, and whom that blames."""
        best = self.causes[0] if self.causes else None
        return None if best is None else (best.pattern, best.culprit.name if best.culprit else "")


class _Seen(NamedTuple):
    from_us: int
    to_us: int
    explained: Explained


class Alike:
    """The cases of one look that were examined."""

    def __init__(self) -> None:
        self._seen: dict[object, list[_Seen]] = {}

    def explained(self, case: Case) -> Explained | None:
        """What the same hogs came to in the same seconds; None: it has to be examined."""
        key = _key(case)
        if key is None:
            return None
        found = [seen.explained for seen in self._seen.get(key, ()) if _same_seconds(seen, case)]
        agree = len({explained.first for explained in found}) == 1
        return found[0] if agree and len(found) >= EXAMINED_ALIKE else None

    def examined(self, case: Case, explained: Explained) -> None:
        key = _key(case)
        if key is not None:
            self._seen.setdefault(key, []).append(_Seen(case.from_us, case.to_us, explained))


def _key(case: Case) -> object:
    kinds = {symptom.kind for symptom in case.group.symptoms}
    task = case.hog_task if kinds <= OWN else None
    if task is None:
        return None
    said = frozenset((symptom.kind, symptom.severity) for symptom in case.group.symptoms)
    return said, case.group.is_moderate, task.comm, task.unit, task.container, task.uid, case.frames


def _same_seconds(seen: _Seen, case: Case) -> bool:
    both = min(seen.to_us, case.to_us) - max(seen.from_us, case.from_us)
    either = max(seen.to_us, case.to_us) - min(seen.from_us, case.from_us)
    return both >= SAME_SECONDS_SHARE * either
