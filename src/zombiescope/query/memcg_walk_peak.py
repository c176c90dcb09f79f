"""How many CPUs walked memory cgroups in the worst second of a window, from its samples.

Functions and stacks are looked at first: where nothing walks, no sample is read. Of a window longer than an hour only
its end is looked at, for an hour of a large node is tens of millions of samples.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from zombiescope.base.time import HOUR_US, SECOND_US
from zombiescope.query.memcg_walks import GENERATIONS, READERS, STEPS, SUMS, VISITS, hertz
from zombiescope.store import columns
from zombiescope.store.columns import Ints, Mask
from zombiescope.store.reader import Recording
from zombiescope.store.stacks import KERNEL_KINDS

LONGEST_US = HOUR_US


class WalkSamples:
    """The samples of a window that walked, read once, to be asked about several ends of it."""

    def __init__(self, recording: Recording, start_us: int | None, end_us: int) -> None:
        self._hz = hertz(recording.node)
        self._first_us: int | None = None
        """Of any sample."""
        start_us = max(start_us or 0, end_us - LONGEST_US)
        walking = _walking_stacks(recording, start_us, end_us)
        found = [np.zeros(0, np.int64)]
        for rows in recording.batches("samples", start_us, end_us, ("time", "stack")):
            times = columns.numbers(rows.column("time"))
            if len(times):
                first_us = int(times.min())
                self._first_us = first_us if self._first_us is None else min(first_us, self._first_us)
            if len(walking):
                found.append(times[np.isin(columns.ids(rows.column("stack")), walking)])
            elif self._first_us is not None:
                break
        self._walked_us = np.sort(np.concatenate(found))

    def peak(self, end_us: int) -> float | None:
        """CPUs that walked in the worst second before a moment; None where nobody was sampled by then."""
        if self._first_us is None or self._first_us >= end_us:
            return None
        first, last = np.searchsorted(self._walked_us, [end_us - LONGEST_US, end_us])
        _, counts = np.unique(self._walked_us[first:last] // SECOND_US, return_counts=True)
        return int(counts.max(initial=0)) / self._hz


def _walking_stacks(recording: Recording, start_us: int, end_us: int) -> Ints:
    """The ids of stacks that walk."""
    found = [np.zeros(0, np.int64)]
    lists = (STEPS, READERS, SUMS, frozenset({GENERATIONS}), VISITS)
    frames = recording.table("frames", start_us, end_us, ("frame", "name", "kind"))
    frames = columns.take(frames, columns.among(frames, "name", frozenset().union(*lists)))  # few of very many
    steps, readers, sums, generations, visits = (_named(frames, names) for names in lists)
    if not len(steps) and not (len(readers) and len(sums)) and not len(generations):
        return found[0]
    for rows in recording.batches("stacks", start_us, end_us, ("stack", "frames")):
        has_step, has_reader, has_sum, is_many = (_on_stack(rows, ids) for ids in (steps, readers, sums, generations))
        visits_one = is_many & _ends_in(rows, visits) if is_many.any() else is_many
        found.append(columns.ids(rows.column("stack"))[has_step | (has_reader & has_sum) | visits_one])
    return np.unique(np.concatenate(found))


def _named(frames: pa.Table, names: frozenset[str]) -> Ints:
    """Ids of the kernel's functions of these names."""
    chosen = columns.take(frames, columns.among(frames, "name", names))
    return columns.ids(chosen.column("frame"))[columns.among(chosen, "kind", KERNEL_KINDS)]


def _on_stack(rows: pa.Table, ids: Ints) -> Mask:
    """Which stacks hold one of the functions."""
    if not len(ids):
        return np.zeros(len(rows), bool)
    held = [np.zeros(0, bool)]
    for chunk in rows.column("frames").chunks:
        offsets, elements = columns.list_parts(chunk)
        places = np.repeat(np.arange(len(chunk)), np.diff(offsets))
        found = np.zeros(len(chunk), bool)
        found[places[np.isin(columns.ids(elements), ids)]] = True
        held.append(found)
    return np.concatenate(held)


def _ends_in(rows: pa.Table, ids: Ints) -> Mask:
    """Which stacks have one of the functions innermost."""
    ends = [np.zeros(0, bool)]
    for chunk in rows.column("frames").chunks:
        offsets, elements = columns.list_parts(chunk)
        last = np.maximum(np.asarray(offsets[1:]) - 1, 0)
        inner = columns.ids(elements)
        ends.append(np.isin(inner[last], ids) & (np.diff(offsets) > 0) if len(inner) else np.zeros(len(chunk), bool))
    return np.concatenate(ends)
