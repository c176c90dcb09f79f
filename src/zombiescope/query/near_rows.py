"""What was read of a thread beside its samples, and at another moment: the nearest row for each sample, and stacks made
of a piece of the one and a piece of the other. Python functions (python_frames.py) and unwound copies of stacks
(whole_frames.py) are joined to samples by this."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from zombiescope.query.stacks import Span, Stacks
from zombiescope.store import columns
from zombiescope.store.columns import Ints
from zombiescope.store.reader import Recording

_TIME_BITS = 44


def keys_of(group: Ints, since_us: Ints) -> Ints:
    """One number for a group and a moment; rows of two groups are always far apart."""
    bounded = np.clip(since_us, 0, (1 << _TIME_BITS - 1) - 1)
    keys: Ints = (group << _TIME_BITS) + bounded
    return keys


def nearest(known: Ints, wanted: Ints, near_us: int) -> Ints:
    """Of each wanted key the place of the nearest known one, which are sorted; -1: none is near enough."""
    after = np.searchsorted(known, wanted)
    found, distance = np.full(len(wanted), -1, np.int64), np.full(len(wanted), near_us + 1, np.int64)
    for place in (after - 1, after):
        inside = (place >= 0) & (place < len(known))
        away = np.abs(known[np.where(inside, place, 0)] - wanted) if len(known) else distance
        nearer = inside & (away < distance)
        found[nearer], distance[nearer] = place[nearer], away[nearer]
    return found


def samples_in(recording: Recording, spans: Sequence[Span]) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Time, task and stack of the samples, part by part."""
    names = ("time", "task", "stack")
    for span in spans:
        for batch in recording.batches("samples", *span, names):
            time_us, task, stack = (columns.ids(batch.column(name)) for name in names)
            yield time_us, task, stack


def threads_of(recording: Recording, spans: Sequence[Span], tids: Ints) -> Ints:
    """Task id -> place of its thread in `tids`, which are sorted; -1 for others."""
    found: list[tuple[Ints, Ints]] = []
    for span in spans:
        table = recording.table("tasks", *span, ("task", "tid"))
        found.append((columns.ids(table.column("task")), columns.ids(table.column("tid"))))
    most = max((int(task.max(initial=-1)) for task, _ in found), default=-1)
    threads = np.full(most + 1, -1, np.int64)
    for task, tid in found:
        place = np.minimum(np.searchsorted(tids, tid), len(tids) - 1)
        known = (task >= 0) & (tids[place] == tid)
        threads[task[known]] = place[known]
    return threads


def looked_up(threads: Ints, task: Ints) -> Ints:
    """What `threads_of` says of each task; -1 for those that it does not know."""
    known = (task >= 0) & (task < len(threads))
    found: Ints = np.where(known, threads[np.where(known, task, 0)], -1) if len(threads) else task * 0 - 1
    return found


def replaced(stack: Ints, at: Ints, pairs: Ints, made: Ints, first_id: int) -> Ints:
    """Stack ids of samples; those `at` which a pair was found have the id of its stack. `made`: pairs that have one,
    sorted, from `first_id` on."""
    place = np.searchsorted(made, pairs)
    known = place < len(made)
    known[known] = made[place[known]] == pairs[known]
    found = stack.copy()
    found[at[known]] = first_id + place[known]
    return found


def append(base: Stacks, *parts: Ints) -> tuple[Stacks, int]:
    """The same stacks and, before the one of samples that have none, new ones: each is made of one piece of `flat`
    (from, to) of every part, in this order. Also the id of the first of them."""
    count = len(parts[0])
    pieces = np.concatenate(parts, 1).reshape(-1, 2)
    lengths = pieces[:, 1] - pieces[:, 0]
    ends = np.cumsum(lengths)
    at = np.arange(int(ends[-1])) + np.repeat(pieces[:, 0] - (ends - lengths), lengths)
    shift, last = len(base.flat), base.count - 1 + count
    behind = ends[len(parts) - 1 :: len(parts)] + shift
    starts = np.concatenate([[shift], behind[:-1]])
    row_of = np.arange(base.count - 1) if base.row_of is None else base.row_of
    moved = np.where(row_of == base.count - 1, last, row_of)
    made = Stacks(
        base.functions,
        np.concatenate([base.flat, base.flat[at]]),
        np.concatenate([base.starts[:-1], starts, base.starts[-1:]]),
        np.concatenate([base.ends[:-1], behind, base.ends[-1:]]),
        np.concatenate([moved, np.arange(base.count - 1, last)]),
        base.looks,
    )
    return made, len(row_of)
