"""Stacks of samples, completed: what copies of the same thread's stack say about how it came to where it was.

The kernel walks a stack by frame pointers, and ends after a frame or two where a library has none. Of the hottest
threads copies of the stack were unwound as well (recorder/whole_stacks.py), more rarely. A sample whose innermost
function outside of the kernel is that of such a copy, of the same thread and at most NEAR_US away, gets the copy's
callers; what it did in the kernel stays. A copy that is not longer than what the kernel walked changes nothing.

So callers are those of the nearest moment at which the thread was in the same function. This is done when a recording
is read; what is stored are the samples as they were taken. Windows without copies cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from zombiescope.query.near_rows import (
    append,
    keys_of,
    looked_up,
    nearest,
    replaced,
    samples_in,
    threads_of,
)
from zombiescope.query.stacks import Span, Stacks, is_kernel
from zombiescope.store import columns
from zombiescope.store.columns import Ints
from zombiescope.store.reader import Recording

NEAR_US = 500_000
TABLE = "whole_stacks"


@dataclass(frozen=True, slots=True)
class Copies:
    """Which unwound copy belongs to which sample."""

    base: Stacks
    origin_us: int
    keys: Ints
    """Group (thread and innermost function) and time of each copy, sorted."""
    rows: Ints
    """What was unwound from it, as a row of `base`."""
    groups: Ints
    """Thread and function of each group, sorted."""
    threads: Ints
    """Task id -> number of its thread; -1 for those that were never copied."""
    inner: Ints
    """Row of `base` -> its innermost function outside of the kernel; -1: none."""
    outside: Ints
    """Row of `base` -> how many functions outside of the kernel it has."""
    pairs: Ints
    first_id: int
    """The id of the first pair's stack."""

    def ids(self, time_us: Ints, task: Ints, stack: Ints) -> Ints:
        """Stack ids of samples, those of completed stacks where there are."""
        at, pairs = self.matches(time_us, task, stack)
        return replaced(stack, at, pairs, self.pairs, self.first_id)

    def matches(self, time_us: Ints, task: Ints, stack: Ints) -> tuple[Ints, Ints]:
        """Which samples a copy completes, and their pairs: row of the sample's stack, row of the copy's."""
        thread = looked_up(self.threads, task)
        rows = self.base.rows_of(stack)
        code = _code(thread, self.inner[rows], len(self.base.functions))
        group = np.minimum(np.searchsorted(self.groups, code), len(self.groups) - 1)
        at = np.flatnonzero((thread >= 0) & (self.inner[rows] >= 0) & (self.groups[group] == code))
        place = nearest(self.keys, keys_of(group[at], time_us[at] - self.origin_us), NEAR_US)
        at, copies = at[place >= 0], self.rows[place[place >= 0]]
        longer = self.outside[copies] > self.outside[rows[at]]
        return at[longer], rows[at[longer]] * self.base.count + copies[longer]


def _code(thread: Ints, function: Ints, functions: int) -> Ints:
    return thread * (functions + 1) + function


def joined(recording: Recording, spans: Sequence[Span], base: Stacks) -> Stacks:
    """The same stacks, and after them those of samples in these windows that a copy completes."""
    copies = _copies(recording, spans, base)
    if copies is None:
        return base
    found = [np.zeros(0, np.int64)]
    for time_us, task, stack in samples_in(recording, spans):
        found.append(np.unique(copies.matches(time_us, task, stack)[1]))
    pairs = np.unique(np.concatenate(found))
    if not len(pairs):
        return base
    sampled, copied = np.divmod(pairs, base.count)
    heads = np.stack([base.starts[copied], base.ends[copied]], 1)
    tails = np.stack([base.ends[sampled] - _in_kernel(base)[sampled], base.ends[sampled]], 1)
    made, first_id = append(base, heads, tails)
    return replace(made, looks=replace(copies, pairs=pairs, first_id=first_id))


def _copies(recording: Recording, spans: Sequence[Span], base: Stacks) -> Copies | None:
    wanted = ("time", "tid", "stack")
    rows = [
        [columns.ids(table.column(name)) for name in wanted]
        for start_us, end_us in spans
        if len(table := recording.table(TABLE, start_us - NEAR_US, end_us + NEAR_US, wanted))
    ]
    if not rows:
        return None
    time_us, tid, stack = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    inner, outside = _outside(base)
    row = base.rows_of(stack)
    usable = (tid > 0) & (inner[row] >= 0)
    if not usable.any():
        return None
    time_us, tid, row = time_us[usable], tid[usable], row[usable]
    tids = np.unique(tid)
    codes = _code(np.searchsorted(tids, tid), inner[row], len(base.functions))
    groups = np.unique(codes)
    origin_us = int(time_us.min()) - 2 * NEAR_US
    keys = keys_of(np.searchsorted(groups, codes), time_us - origin_us)
    order = np.argsort(keys, kind="stable")
    threads = threads_of(recording, spans, tids)
    return Copies(base, origin_us, keys[order], row[order], groups, threads, inner, outside, keys[:0], 0)


def _in_kernel(base: Stacks) -> Ints:
    """How many functions at the end of each stack are the kernel's."""
    kernel = base.which(is_kernel)[base.flat]
    last = np.maximum.accumulate(np.where(kernel, -1, np.arange(len(base.flat)))) if len(base.flat) else base.flat
    ends = base.ends
    begin = np.where(ends > base.starts, np.maximum(last[np.maximum(ends - 1, 0)] + 1, base.starts), ends)
    return np.asarray(ends - begin, np.int64)


def _outside(base: Stacks) -> tuple[Ints, Ints]:
    """Of each stack its innermost function outside of the kernel, and how many there are."""
    count = base.ends - base.starts - _in_kernel(base)
    count[-1] = 0  # a sample without a stack
    place = np.maximum(base.starts + count - 1, 0)
    inner = np.where(count > 0, base.flat[place] if len(base.flat) else 0, -1)
    return inner.astype(np.int64), count
