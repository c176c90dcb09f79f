"""Processes of one parent that stopped using the CPU, by a signal or because they sleep: rows of the recorder as spans.

Who wrote them, and when: recorder/quiet_processes.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.sample_grid import SampleGrid
from zombiescope.diagnosis.thresholds import STOPS_APART_US
from zombiescope.query.waiting import WaitingTask
from zombiescope.store.columns import Mask


@dataclass(frozen=True, slots=True)
class Quiet:
    """Workers of one parent, in one span."""

    parent: int
    parent_comm: str
    from_us: int
    to_us: int
    pids: tuple[int, ...]
    comm: str
    wchan: str | None
    """The function that most of them sleep in."""

    @property
    def seconds(self) -> float:
        return (self.to_us - self.from_us) / 1e6

    @property
    def many(self) -> int:
        return len(self.pids)

    def overlaps(self, from_us: int, to_us: int) -> bool:
        return self.from_us < to_us and self.to_us > from_us


def quiet(facts: Facts, *kinds: str) -> list[Quiet]:
    """In the order of time."""
    groups: dict[str, list[WaitingTask]] = {}
    for one in facts.waiting:
        if one.kind in kinds and one.resource is not None and one.pid is not None:
            groups.setdefault(one.resource, []).append(one)
    found = (_quiet(parent, span) for parent, rows in groups.items() for span in _spans(rows))
    return sorted((one for one in found if one is not None), key=lambda one: one.from_us)


def _spans(rows: list[WaitingTask]) -> Iterator[list[WaitingTask]]:
    span: list[WaitingTask] = []
    for row in sorted(rows, key=lambda row: row.at_us):
        if span and (row.since_us > span[-1].at_us or row.at_us - span[-1].at_us > STOPS_APART_US):
            yield span
            span = []
        span.append(row)
    if span:
        yield span


def _quiet(parent: str, rows: list[WaitingTask]) -> Quiet | None:
    comm, _, pid = parent.rpartition(":")
    if not pid.isdigit():
        return None
    wchans = Counter(row.wchan for row in rows if row.wchan)
    return Quiet(
        parent=int(pid),
        parent_comm=comm,
        from_us=min(row.since_us for row in rows),
        to_us=max(row.at_us for row in rows),
        pids=tuple(sorted({row.pid for row in rows if row.pid is not None})),
        comm=Counter(row.comm for row in rows).most_common(1)[0][0],
        wchan=wchans.most_common(1)[0][0] if wchans else None,
    )


# --- what processes used ----------------------------------------------------------------------------------------------


def used(facts: Facts, pids: Collection[int], from_us: int, to_us: int, *, tree: bool) -> float | None:
    """Cores' worth of CPU of these processes, with all that descend from them if so asked; None where the span is too
    short or nothing at all was sampled."""
    from_us, to_us = max(from_us, facts.start_us), min(to_us, facts.end_us)
    if to_us - from_us < SECOND_US or not facts.is_sampled:
        return None
    grid = facts.samples_between(from_us, to_us)
    if not len(grid):
        return 0.0
    mine = grid.below(frozenset(pids)) if tree else _of(grid, pids)
    return int(np.count_nonzero(mine)) / grid.hz / ((to_us - from_us) / 1e6)


def _of(grid: SampleGrid, pids: Collection[int]) -> Mask:
    tasks = [task for task in np.unique(grid.task).tolist() if grid.task_of(task).pid in pids]
    found: Mask = np.isin(grid.task, tasks)
    return found


def used_before(facts: Facts, pids: Collection[int], at_us: int, past_us: int, *, tree: bool) -> float | None:
    """The same of the time before a moment, which may lie before the window."""
    if at_us - facts.start_us >= past_us:
        return used(facts, pids, at_us - past_us, at_us, tree=tree)
    past = facts.before(at_us, past_us)
    return None if past is None else used(past, pids, past.start_us, past.end_us, tree=tree)
