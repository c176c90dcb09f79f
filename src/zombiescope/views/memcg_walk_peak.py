"""How many CPUs walked memory cgroups in the worst second of a window, from its samples.

Functions and stacks are looked at first: where nothing walks, no sample is read. Of a window longer than an hour only
its end is looked at, for an hour of a large node is tens of millions of samples.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from zombiescope._time import HOUR_US, SECOND_US
from zombiescope.recording import columns
from zombiescope.recording.columns import Ints, Mask
from zombiescope.recording.reader import Recording
from zombiescope.recording.stacks import KERNEL_KINDS
from zombiescope.views.memcg_walks import GENERATIONS, READERS, STEPS, SUMS, VISITS, hertz

LONGEST_US = HOUR_US


def walk_peak(recording: Recording, start_us: int | None, end_us: int) -> float | None:
    """None where nobody was sampled."""
    start_us = max(start_us or 0, end_us - LONGEST_US)
    walking = _walking_stacks(recording, start_us, end_us)
    by_second: dict[int, int] = {}
    sampled = False
    for rows in recording.batches("samples", start_us, end_us, ("time", "stack")):
        sampled = sampled or len(rows) > 0
        if not len(walking):
            if sampled:
                break
            continue
        inside = np.isin(columns.ids(rows.column("stack")), walking)
        seconds, counts = np.unique(columns.numbers(rows.column("time"))[inside] // SECOND_US, return_counts=True)
        for second, count in zip(seconds.tolist(), counts.tolist(), strict=True):
            by_second[second] = by_second.get(second, 0) + count
    return max(by_second.values(), default=0) / hertz(recording.node) if sampled else None


def _walking_stacks(recording: Recording, start_us: int, end_us: int) -> Ints:
    """The ids of stacks that walk."""
    found = [np.zeros(0, np.int64)]
    frames = recording.table("frames", start_us, end_us, ("frame", "name", "kind"))
    lists = (STEPS, READERS, SUMS, frozenset({GENERATIONS}), VISITS)
    steps, readers, sums, generations, visits = (_named(frames, names) for names in lists)
    if not len(steps) and not (len(readers) and len(sums)) and not len(generations):
        return found[0]
    for rows in recording.batches("stacks", start_us, end_us, ("stack", "frames")):
        has_step, has_reader, has_sum, is_many = (_on_stack(rows, ids) for ids in (steps, readers, sums, generations))
        visits_one = is_many & _ends_in(rows, visits) if is_many.any() else is_many
        found.append(columns.ids(rows.column("stack"))[has_step | (has_reader & has_sum) | visits_one])
    return np.unique(np.concatenate(found))


def _named(frames: pa.Table, names: frozenset[str]) -> Ints:
    texts, kinds = columns.texts(frames.column("name")), columns.texts(frames.column("kind"))
    chosen = [row for row, name in enumerate(texts) if name in names and kinds[row] in KERNEL_KINDS]
    return columns.ids(frames.column("frame"))[chosen]


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
