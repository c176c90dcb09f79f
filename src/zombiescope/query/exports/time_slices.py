"""Samples cut into equal spans of time, for a peer that takes one profile after the other.

Parts come in the order of their start and may overlap: a span is handed out when a part begins after its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from zombiescope.query.exports.samples import ExportSamples, SampleBatch


@dataclass(frozen=True, slots=True)
class TimeSlice:
    """The samples of [start_us, end_us), in the order of time within a part."""

    start_us: int
    end_us: int
    rows: SampleBatch


def slices(samples: ExportSamples, every_us: int) -> Iterator[TimeSlice]:
    """Every span that has samples, oldest first; spans begin at multiples of their length."""
    waiting: SampleBatch | None = None
    for batch in samples.batches():
        if not len(batch):
            continue
        if waiting is not None:
            begun = int(batch.time_us[0]) // every_us * every_us
            done = waiting.time_us < begun
            yield from _cut(waiting.cut(done), every_us)
            waiting = waiting.cut(~done).joined(batch)
        else:
            waiting = batch
    if waiting is not None:
        yield from _cut(waiting, every_us)


def _cut(rows: SampleBatch, every_us: int) -> Iterator[TimeSlice]:
    number = rows.time_us // every_us
    order = np.argsort(number, kind="stable")
    numbers, firsts = np.unique(number[order], return_index=True)
    bounds = [*firsts.tolist(), len(order)]
    for position, each in enumerate(numbers.tolist()):
        chosen = order[bounds[position] : bounds[position + 1]]
        yield TimeSlice(each * every_us, (each + 1) * every_us, rows.cut(chosen))
