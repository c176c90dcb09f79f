"""Samples counted once, when a part is written: what a picture of hours needs instead of the samples themselves.

`heat` has a row for each second with samples: how many in each hundredth of it, and how many on each core.
`stack_counts` has a row for each stack: how often the part sampled it. Both say nothing that the samples do not say, so
a reader that cannot use them (a filter on tasks, a part written before they existed, a damaged file) counts the samples
and finds the same.

A part has no summary where a sample is not simply one moment of the recorder's own clock (imports: several events,
weights), or where a core's number is no number of a core.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from zombiescope.base.time import SECOND_US
from zombiescope.store import columns, schema
from zombiescope.store.columns import Ints

HUNDREDTHS = 100
_HUNDREDTH_US = SECOND_US // HUNDREDTHS
_TOGETHER_S = 3600
"""Seconds that are counted in one array: a clock that was set puts samples years apart, too far for an array."""
_MAX_CPU = 8191
"""The kernel's own limit on x86."""


class Summary:
    """Counts the samples of one part while it is being written."""

    def __init__(self) -> None:
        self._heat: dict[int, Ints] = {}
        self._cores: dict[int, Ints] = {}
        self._stacks = np.zeros(0, np.int64)
        self._without_stack = 0
        self._simple = True

    def add(self, samples: pa.Table) -> None:
        """Rows of `samples`, with the ids of the part."""
        cpu = columns.ids(samples.column("cpu"))
        weighted = samples.column("series").null_count < len(samples)
        if weighted or samples.column("time").null_count or int(cpu.max(initial=0)) > _MAX_CPU:
            self._simple = False
        if not self._simple or not len(samples):
            return
        time_us = columns.numbers(samples.column("time"))
        self._count_stacks(columns.ids(samples.column("stack")))
        hour = time_us // (_TOGETHER_S * SECOND_US)
        for each in np.unique(hour).tolist():
            inside = slice(None) if hour[0] == each and (hour == each).all() else hour == each
            self._count_seconds(each * _TOGETHER_S, time_us[inside], cpu[inside])

    def _count_stacks(self, stack: Ints) -> None:
        counted = np.bincount(stack + 1, minlength=len(self._stacks) + 1)
        self._without_stack += int(counted[0])
        counted[1 : len(self._stacks) + 1] += self._stacks
        self._stacks = counted[1:]

    def _count_seconds(self, first_s: int, time_us: Ints, cpu: Ints) -> None:
        if not len(time_us):
            return
        second = time_us // SECOND_US - first_s
        start, end = int(second.min()), int(second.max()) + 1
        second -= start
        hundredth = time_us // _HUNDREDTH_US - (first_s + start) * HUNDREDTHS
        heat = np.bincount(hundredth, minlength=(end - start) * HUNDREDTHS).reshape(-1, HUNDREDTHS)
        width = int(cpu.max(initial=-1)) + 1
        known = cpu >= 0
        cores = np.bincount(second[known] * width + cpu[known], minlength=(end - start) * width).reshape(
            end - start, width
        )
        for at in np.flatnonzero(heat.any(axis=1)).tolist():
            self._heat[first_s + start + at] = _sum(self._heat.get(first_s + start + at), heat[at])
            self._cores[first_s + start + at] = _sum(self._cores.get(first_s + start + at), cores[at])

    def tables(self) -> dict[schema.Table, pa.Table]:
        """The rows of both tables; nothing when the part cannot have them."""
        if not self._simple or not self._heat:
            return {}
        return {schema.HEAT: self._heat_rows(), schema.STACK_COUNTS: self._stack_rows()}

    def _heat_rows(self) -> pa.Table:
        seconds = np.array(sorted(self._heat), np.int64)
        width = max(len(cores) for cores in self._cores.values())
        heat = np.stack([self._heat[second] for second in seconds.tolist()])
        cores = np.zeros((len(seconds), width), np.int64)
        for row, second in enumerate(seconds.tolist()):
            cores[row, : len(self._cores[second])] = self._cores[second]
        arrays = [
            columns.ints_array(seconds * SECOND_US, None, columns.arrow_type(schema.HEAT.columns[0])),
            _lists(heat),
            _lists(cores),
        ]
        return pa.Table.from_arrays(arrays, schema=columns.arrow_schema(schema.HEAT))

    def _stack_rows(self) -> pa.Table:
        stacks = np.flatnonzero(self._stacks)
        counts = self._stacks[stacks]
        if self._without_stack:
            stacks, counts = np.append(stacks, -1), np.append(counts, self._without_stack)
        arrays = [
            columns.ints_array(stacks, stacks >= 0, pa.int32()),
            columns.ints_array(counts, None, pa.int64()),
        ]
        return pa.Table.from_arrays(arrays, schema=columns.arrow_schema(schema.STACK_COUNTS))


def _sum(before: Ints | None, more: Ints) -> Ints:
    if before is None:
        return more
    if len(before) > len(more):
        before, more = more, before
    total = more.copy()
    total[: len(before)] += before
    return total


def _lists(values: Ints) -> pa.Array:
    offsets = np.arange(len(values) + 1, dtype=np.int64) * values.shape[1]
    return columns.lists_array(offsets.astype(np.int32), columns.ints_array(values.reshape(-1), None, pa.int32()))
