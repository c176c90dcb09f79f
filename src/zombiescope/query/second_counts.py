"""Whole seconds of a window as compaction counted them (store/summary.py), and what is left to be counted.

A window begins and ends inside a second, some parts have no summary (the log; parts of an older version; damage), and a
filter makes all of them useless: `split` says for each part which seconds are counted already and in which spans the
samples have to be read. Both together are the window, and no sample is in both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from zombiescope.base.time import SECOND_US
from zombiescope.query.selection import Selection
from zombiescope.query.stacks import Span
from zombiescope.store import columns
from zombiescope.store.columns import Ints
from zombiescope.store.part import Part


@dataclass(frozen=True, slots=True)
class SecondCounts:
    """counts[i] are the samples of the second that begins at time_us[i], each second once."""

    time_us: Ints
    counts: Ints


@dataclass(frozen=True, slots=True)
class PartSeconds:
    part: Part
    counted: SecondCounts | None
    rest: tuple[Span, ...]


def split(selection: Selection, column: str) -> Iterator[PartSeconds]:
    """`column` of the table `heat`: "hundredths" or "cores"."""
    start_us, end_us = selection.span
    first_us, behind_us = -(-start_us // SECOND_US) * SECOND_US, end_us // SECOND_US * SECOND_US
    usable = selection.countable and not selection.filters.on_stacks and first_us < behind_us
    for part in selection.recording.parts:
        wanted = ("time", column)
        rows = selection.recording.summary(part, "heat", first_us, behind_us, wanted) if usable else None
        counted = None if rows is None else _seconds(rows, column)
        if counted is None:
            yield PartSeconds(part, None, (selection.span,))
        else:
            edges = ((start_us, first_us), (behind_us, end_us))
            yield PartSeconds(part, counted, tuple((low, high) for low, high in edges if low < high))


def _seconds(rows: pa.Table, column: str) -> SecondCounts | None:
    """None when the lists are not all of one length: then they are not what compaction writes."""
    time_us = columns.numbers(rows.column("time"))
    lists = [columns.list_parts(chunk) for chunk in rows.column(column).chunks]
    lengths = np.concatenate([np.zeros(0, np.int32), *(np.diff(offsets) for offsets, _ in lists)])
    if not len(lengths):
        return SecondCounts(time_us, np.zeros((0, 0), np.int64))
    if lengths.min() != lengths.max():
        return None
    counts = np.concatenate([columns.numbers(elements) for _, elements in lists])
    return SecondCounts(time_us, counts.reshape(len(time_us), int(lengths[0])))
