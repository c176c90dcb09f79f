"""Python functions on the stacks of samples: what a thread was doing in Python within NEAR_US of when it was sampled.

A sample's stack is the machine's: the interpreter, C libraries, the kernel. The Python functions of the same thread
were read at another moment (recorder/pythons.py). Where one of those looks is at most NEAR_US away, the sample's stack
becomes

    the outermost frame, where threads of the machine begin (_start, clone3),
    the Python functions, outermost first, and whatever ran inside of the innermost call of the interpreter

so that a thread has one root, whether a look was near a sample or not, and the interpreter's own frames, which all look
alike, give way to what they interpret. Where the machine's stack does not reach the interpreter, for want of frame
pointers, all of it that is known is kept. C functions between two calls of the interpreter (a sort() that calls a key
function) are not shown.

This is done when a recording is read; what is stored are the samples as they were taken. Windows without Python rows
cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from zombiescope.query import stacks, whole_frames
from zombiescope.query.near_rows import (
    append,
    keys_of,
    looked_up,
    nearest,
    replaced,
    samples_in,
    threads_of,
)
from zombiescope.query.stacks import Function, Functions, Span, Stacks
from zombiescope.store import columns
from zombiescope.store.columns import Ints, Mask
from zombiescope.store.reader import Recording

NEAR_US = 50_000
DENSE_US = 150_000
"""Looks of a row that are at most so far apart are those of a thread that was looked at ten times a second."""
KIND = "python"
_ENTRIES = ("_start", "__libc_start", "start_thread", "thread_start", "clone", "__clone")
"""Where the stacks of threads begin, where they were read to the end."""
_INTERPRETERS = ("_PyEval_EvalFrameDefault", "_PyEval_Vector", "_PyEval_EvalFrame", "py::")
"""What runs Python: the interpreter, and the trampolines of `python -X perf`."""


@dataclass(frozen=True, slots=True)
class Looks:
    """Which Python stack belongs to which sample."""

    base: Stacks
    """Without Python functions."""
    origin_us: int
    keys: Ints
    """Thread and time of each look, sorted."""
    rows: Ints
    """The Python stack that it saw, as a row of `base`."""
    threads: Ints
    """Task id -> number of its thread in `keys`; -1 for those that were never looked at."""
    pairs: Ints
    """Row of the machine's stack and row of the Python stack, sorted."""
    first_id: int
    """The id of the first pair's stack."""

    def ids(self, time_us: Ints, task: Ints, stack: Ints) -> Ints:
        """Stack ids of samples, those of joined stacks where there are."""
        stack = self._completed(time_us, task, stack)
        at, pairs = self._matches(time_us, task, stack)
        return replaced(stack, at, pairs, self.pairs, self.first_id)

    def matches(self, time_us: Ints, task: Ints, stack: Ints) -> tuple[Ints, Ints]:
        """Which samples have a look nearby, and their pairs."""
        return self._matches(time_us, task, self._completed(time_us, task, stack))

    def _completed(self, time_us: Ints, task: Ints, stack: Ints) -> Ints:
        return stack if self.base.looks is None else self.base.looks.ids(time_us, task, stack)

    def _matches(self, time_us: Ints, task: Ints, stack: Ints) -> tuple[Ints, Ints]:
        thread = looked_up(self.threads, task)
        at = np.flatnonzero(thread >= 0)
        if not len(at):
            return at, at
        place = nearest(self.keys, keys_of(thread[at], time_us[at] - self.origin_us), NEAR_US)
        at, place = at[place >= 0], place[place >= 0]
        return at, self.base.rows_of(stack[at]) * self.base.count + self.rows[place]


def load(recording: Recording, spans: Sequence[Span], functions: Functions | None = None) -> Stacks:
    """As stacks.load, with the Python functions of samples that have any."""
    return joined(recording, spans, whole_frames.joined(recording, spans, stacks.load(recording, spans, functions)))


def joined(recording: Recording, spans: Sequence[Span], base: Stacks) -> Stacks:
    """The same stacks, and after them those of samples in these windows that have Python functions on them."""
    looks = _looks(recording, spans, base)
    if looks is None:
        return base
    found = [np.zeros(0, np.int64)]
    for time_us, task, stack in samples_in(recording, spans):
        found.append(np.unique(looks.matches(time_us, task, stack)[1]))
    pairs = np.unique(np.concatenate(found))
    return _with(base, replace(looks, pairs=pairs)) if len(pairs) else base


def _looks(recording: Recording, spans: Sequence[Span], base: Stacks) -> Looks | None:
    wanted = ("time", "until", "looks", "tid", "stack")
    rows = [
        [columns.ids(table.column(name)) for name in wanted]
        for start_us, end_us in spans
        if len(table := recording.table(KIND, start_us - NEAR_US, end_us + NEAR_US, wanted))
    ]
    if not rows:
        return None
    first_us, until_us, counts, tid, stack = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    usable = (stack >= 0) & (tid > 0) & (counts > 0) & (until_us >= first_us)
    if not usable.any():
        return None
    at, row = _points(first_us[usable], until_us[usable], counts[usable])
    tids = np.unique(tid[usable])
    origin_us = int(first_us.min()) - 2 * NEAR_US  # so that what is earlier than all looks is near to none
    keys = keys_of(np.searchsorted(tids, tid[usable][row]), at - origin_us)
    order = np.argsort(keys, kind="stable")
    first_id = 0 if base.row_of is None else len(base.row_of)
    seen = base.rows_of(stack[usable][row])
    return Looks(base, origin_us, keys[order], seen[order], threads_of(recording, spans, tids), keys[:0], first_id)


def _points(first_us: Ints, until_us: Ints, looks: Ints) -> tuple[Ints, Ints]:
    """When each look was, and of which row it is. Of looks far apart only the first and the last are known."""
    span = until_us - first_us
    dense = (looks > 1) & (span <= DENSE_US * (looks - 1))
    points = np.where(dense, np.minimum(looks, span // (NEAR_US // 2) + 2), np.where(looks > 1, 2, 1))
    row = np.repeat(np.arange(len(points)), points)
    number = np.arange(len(row)) - np.repeat(np.cumsum(points) - points, points)
    return first_us[row] + span[row] * number // np.maximum(points[row] - 1, 1), row


def _with(base: Stacks, looks: Looks) -> Stacks:
    """The stacks of the pairs, between those of the base and the one of samples that have none."""
    native, python = np.divmod(looks.pairs, base.count)
    heads = np.stack([base.starts[python], base.ends[python]], 1)
    entry, inside = _entry(base, native), _inside(base, native)
    inside[:, 0] = np.maximum(inside[:, 0], entry[:, 1])  # of a stack without the interpreter all of it is inside
    made, first_id = append(base, entry, heads, inside)
    return replace(made, looks=replace(looks, first_id=first_id))


def _entry(base: Stacks, rows: Ints) -> Ints:
    """The outermost frame of each machine's stack, as a piece of `flat`; nothing where it is not one of _ENTRIES."""
    starts, ends = base.starts[rows], base.ends[rows]
    is_entry = base.which(lambda function: function.kind == "user" and function.name.startswith(_ENTRIES))
    there = ends > starts
    if there.any():
        there &= is_entry[base.flat[np.where(there, starts, 0)]]
    return np.stack([starts, starts + there], 1)


def _inside(base: Stacks, rows: Ints) -> Ints:
    """Of each machine's stack, from where to where in `flat` it is inside of the innermost call of the interpreter."""
    is_interpreter = base.which(_runs_python)[base.flat]
    last = (
        np.maximum.accumulate(np.where(is_interpreter, np.arange(len(base.flat)), -1)) if len(base.flat) else base.flat
    )
    ends = base.ends[rows]
    begin = np.where(ends > base.starts[rows], last[np.maximum(ends - 1, 0)] + 1, ends)
    bare = rows == base.count - 1  # a sample without a stack
    return np.stack([np.where(bare, ends, np.maximum(begin, base.starts[rows])), ends], 1)


def _runs_python(function: Function) -> bool:
    return function.kind in ("user", "jit") and function.name.startswith(_INTERPRETERS)


def has_python(known: Stacks) -> Mask:
    """Stacks with a Python function, among those that samples have."""
    return known.where(known.which(lambda function: function.kind == KIND).tolist())
