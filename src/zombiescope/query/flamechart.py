"""Samples of one core or one thread in the order of time: which function ran when.

Consecutive samples are one box at each depth as long as the frame there, and everything below it, stays the same. A
sample lasts until the next one, at most as long as two samples are apart on a busy core: what is longer was idle, or
not recorded, and stays empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zombiescope.query.selection import Selection
from zombiescope.query.stacks import Stacks
from zombiescope.store.columns import Ints

MOST_SAMPLES = 200_000
GAP = 1.8
"""Of the time between two samples: more than that and the core did something else, or nothing, in between."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Boxes ordered by start, then depth. `left_off`: samples after the first MOST_SAMPLES, and boxes too short."""

    stacks: Stacks
    function: Ints
    depth: Ints
    start_us: Ints
    end_us: Ints
    samples: Ints
    left_off: int


def chart(selection: Selection, hz: float, most: int) -> Chart:
    """At most `most` boxes; the shortest are left off."""
    nothing = np.zeros(0, np.int64)
    pieces = list(selection.columns("time", "stack")) or [(nothing, nothing)]
    time_us, stack = (np.concatenate(column) for column in zip(*pieces, strict=True))
    order = np.argsort(time_us, kind="stable")
    left_off = max(0, len(order) - MOST_SAMPLES)
    time_us, rows = time_us[order][:MOST_SAMPLES], selection.stacks.rows_of(stack[order][:MOST_SAMPLES])
    period_us = round(1e6 / max(hz, 0.1))
    ends = _ends(time_us, period_us)
    boxes = _boxes(selection.stacks, rows, time_us, ends)
    function, depth, first, last = boxes
    start_us, end_us = time_us[first], ends[last]
    samples = last - first + 1
    if len(function) > most:
        longest = np.argsort(-(end_us - start_us), kind="stable")[:most]
        left_off += len(function) - most
        function, depth, start_us, end_us, samples = (
            column[longest] for column in (function, depth, start_us, end_us, samples)
        )
    sort = np.lexsort((depth, start_us))
    return Chart(selection.stacks, function[sort], depth[sort], start_us[sort], end_us[sort], samples[sort], left_off)


def _ends(time_us: Ints, period_us: int) -> Ints:
    """When each sample is over: when the next one comes, unless that is too long."""
    if not len(time_us):
        return time_us
    following = np.append(time_us[1:], time_us[-1] + period_us)
    return np.where(following - time_us <= period_us * GAP, following, time_us + period_us)


def _boxes(
    known: Stacks, rows: Ints, time_us: Ints, ends: Ints
) -> tuple[Ints, Ints, npt.NDArray[Any], npt.NDArray[Any]]:
    """(function, depth, first sample, last sample) of each box."""
    closed: list[tuple[int, int, int, int]] = []
    open_: list[tuple[int, int]] = []  # (function, first sample) by depth
    before_row = -1
    for number, row in enumerate(rows.tolist()):
        apart = number > 0 and time_us[number] > ends[number - 1]
        if row == before_row and not apart:
            continue
        frames = known.flat[known.starts[row] : known.ends[row]].tolist()
        same = 0
        if not apart:
            while same < min(len(frames), len(open_)) and open_[same][0] == frames[same]:
                same += 1
        closed += [(open_[at][0], at, open_[at][1], number - 1) for at in range(same, len(open_))]
        del open_[same:]
        open_ += [(function, number) for function in frames[same:]]
        before_row = row
    closed += [(function, at, first, len(rows) - 1) for at, (function, first) in enumerate(open_)]
    table = np.array(closed, np.int64).reshape(-1, 4)
    return table[:, 0], table[:, 1], table[:, 2], table[:, 3]
