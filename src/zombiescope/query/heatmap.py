"""Samples over time, as counts: by the offset within the second, or by core.

The sub-second map has a column for each whole second and a row for each part of a second, so a stall of 40 ms is
visible in hours of data, and a thing that happens every second at the same moment is a line. The core map has a
column for a span of time and a row for each core: one saturated core among many is a line.

values[column][row]; row 0 is the start of the second, or the first core. A cell in which nothing ran and a cell
that was not recorded are both 0: `blind` distinguishes them.

`values` counts samples. 99 of them a second do not fit into 50 rows: one row has one where its neighbours have two, in
every second the same, and a picture of the counts has a stripe that is none. So pictures are drawn from `spread`: a
sample stands for the time between two of them, and each row gets the part of that time which lies in it (0059).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zombiescope.base.time import SECOND_US
from zombiescope.query import rate
from zombiescope.query.selection import Selection
from zombiescope.query.stacks import Span
from zombiescope.store import columns
from zombiescope.store.columns import Ints
from zombiescope.store.gaps import unsampled
from zombiescope.store.part import Part
from zombiescope.store.summary import HUNDREDTHS

DEFAULT_ROWS = 50

BLINDING = frozenset({"recorder", "stack samples"})
"""Sources without which there are no samples."""

READ_SAMPLES = 5_000_000
"""Of a window that may have more, summaries are taken, which know the hundredth of a second but no more: with so many
cores or seconds a stripe of one core is not seen."""

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Cells = TypeVar("Cells", Counts, Floats)


@dataclass(frozen=True, slots=True)
class Heatmap:
    """`cores` names the rows of a core map and is None in a sub-second map."""

    start_us: int
    column_us: int
    values: Counts
    cores: tuple[int, ...] | None = None
    blind: tuple[tuple[int, int], ...] = ()
    spread: Floats | None = None
    """The same samples by exact time, for pictures; None where only their number is known."""

    @property
    def shades(self) -> Counts | Floats:
        """What a picture is drawn from."""
        return self.values if self.spread is None else self.spread

    @property
    def columns(self) -> int:
        return len(self.values)

    @property
    def rows(self) -> int:
        return int(self.values.shape[1])

    @property
    def max(self) -> int:
        return int(self.values.max(initial=0))

    @property
    def total(self) -> int:
        return int(self.values.sum())

    @property
    def end_us(self) -> int:
        return self.start_us + self.columns * self.column_us

    def narrowed(self, columns: int, rows: int | None = None) -> Heatmap:
        """At most so many columns (and rows of a second), by adding neighbours up. Cores stay apart: a sum over cores
        hides the one that was lost."""
        by = -(-self.columns // columns) if self.columns else 1
        together = 1 if rows is None or self.cores is not None else _rows_together(self.rows, rows)
        values = _add_up(_add_up(self.values, by, 0), together, 1)
        spread = None if self.spread is None else _add_up(_add_up(self.spread, by, 0), together, 1)
        return Heatmap(self.start_us, self.column_us * by, values, self.cores, self.blind, spread)


def _rows_together(rows: int, most: int) -> int:
    """How many rows are added up: such that every sum has as many, or the last would look colder than it is."""
    return next(by for by in range(1, rows + 1) if rows % by == 0 and rows // by <= most)


def _add_up(values: Cells, by: int, axis: int) -> Cells:
    if by == 1 or values.shape[axis] == 0:
        return values
    return cast("Cells", np.add.reduceat(values, np.arange(0, values.shape[axis], by), axis=axis))


def subsecond(selection: Selection, rows: int = DEFAULT_ROWS) -> Heatmap:
    """Whole seconds by parts of a second."""
    first, columns = grid(selection, SECOND_US)
    values = np.zeros(columns * rows, np.int64)
    period_us = _period_us(selection)
    spread = None if period_us is None else np.zeros(columns * rows)
    usable = spread is None and HUNDREDTHS % rows == 0
    for counted, samples in _counted(selection, "hundredths", usable, "time"):
        if counted is not None and len(counted.counts):
            added = counted.counts.reshape(len(counted.counts), rows, -1).sum(axis=2)
            values.reshape(columns, rows)[(counted.time_us - first) // SECOND_US] += added
        for (time_us,) in samples:
            values += np.bincount(cells(time_us, first, rows), minlength=len(values))
            if spread is not None and period_us is not None:
                spread += _spread(time_us - first, period_us, rows, len(values))
    drawn = None if spread is None else spread.reshape(columns, rows)
    return Heatmap(first, SECOND_US, values.reshape(columns, rows), None, blind(selection), drawn)


def _period_us(selection: Selection) -> float | None:
    """The time that a sample stands for; None where that is not known, and where there are too many to read them."""
    period_us = rate.period_us(selection)
    if period_us is None:
        return None
    cpus = selection.recording.node.get("cpus")
    online = cpus.get("online") if isinstance(cpus, dict) else None
    cores = len(selection.filters.cpus) or (len(online) if isinstance(online, list) else 1)
    expected = cores * (selection.end_us - selection.start_us) / period_us
    return period_us if expected <= READ_SAMPLES or not selection.countable else None


def _spread(offset_us: Ints, period_us: float, rows: int, count: int) -> Floats:
    """The time around each sample, in samples, by rows; what lies beyond the map stays at its edge."""
    row_us = SECOND_US / rows
    start = offset_us - period_us / 2
    first = np.floor(start / row_us).astype(np.int64)
    total = np.zeros(count)
    for step in range(int(period_us // row_us) + 2):
        low = np.maximum(start, (first + step) * row_us)
        high = np.minimum(start + period_us, (first + step + 1) * row_us)
        part = np.maximum(high - low, 0) / period_us
        total += np.bincount(np.clip(first + step, 0, count - 1), part, count)
    return total


def _counted(
    selection: Selection, column: str, usable: bool, *names: str
) -> Iterator[tuple[SecondCounts | None, Iterator[tuple[Ints, ...]]]]:
    """Part by part what compaction counted already, and these columns of the samples that it did not."""
    if not usable:
        yield None, selection.columns(*names)
        return
    for each in split_by_second(selection, column):
        spans = [selection.within(*span) for span in each.rest]
        parts = [each.part]
        yield each.counted, (rows for span in spans for rows in span.columns(*names, parts=parts))


def cells(time_us: Ints, first_us: int, rows: int) -> Ints:
    """The cell of each moment, column * rows + row, when columns begin at a whole second."""
    offset = time_us - first_us
    cell: Ints = offset // SECOND_US * rows + offset % SECOND_US * rows // SECOND_US
    return cell


def by_core(selection: Selection, column_us: int = SECOND_US) -> Heatmap:
    """Time by core. Every core that the recording knows has a row, also one on which nothing was sampled."""
    first, columns = grid(selection, column_us)
    values = np.zeros((columns, 0), np.int64)
    for counted, samples in _counted(selection, "cores", column_us % SECOND_US == 0, "time", "cpu"):
        if counted is not None and len(counted.counts):
            values = _widened(values, counted.counts.shape[1])
            column = (counted.time_us - first) // column_us
            np.add.at(values[:, : counted.counts.shape[1]], column, counted.counts)
        for time_us, cpu in samples:
            known = cpu >= 0
            column, cpu = (time_us[known] - first) // column_us, cpu[known]
            values = _widened(values, int(cpu.max(initial=-1)) + 1)
            width = values.shape[1]
            values += np.bincount(column * width + cpu, minlength=columns * width).reshape(columns, width)
    named = cores(selection, np.flatnonzero(values.sum(axis=0)).tolist())
    values = _widened(values, max(named, default=-1) + 1)
    return Heatmap(first, column_us, values[:, list(named)], named, blind(selection))


def _widened(values: Counts, cores: int) -> Counts:
    """With room for so many cores."""
    if cores <= values.shape[1]:
        return values
    wide = np.zeros((len(values), cores), np.int64)
    wide[:, : values.shape[1]] = values
    return wide


def grid(selection: Selection, column_us: int) -> tuple[int, int]:
    """When the first column begins, and how many cover the window."""
    first = selection.start_us // column_us * column_us
    columns, rest_us = divmod(max(0, selection.end_us - first), column_us)
    # A window up to the last row of a recording ends a microsecond after it: a column only if a sample is there.
    return first, columns + (rest_us > 1 or (rest_us == 1 and selection.any_at(selection.end_us - 1)))


def cores(selection: Selection, sampled: Iterable[int]) -> tuple[int, ...]:
    """The cores that were sampled, and those that the node has and the filters allow."""
    wanted = selection.filters.cpus
    cpus = selection.recording.node.get("cpus")
    online = cpus.get("online", ()) if isinstance(cpus, dict) else ()
    return tuple(sorted({*sampled} | {cpu for cpu in online if isinstance(cpu, int) and (not wanted or cpu in wanted)}))


def blind(selection: Selection) -> tuple[tuple[int, int], ...]:
    """Spans of the window in which no stack could be sampled, because nothing was recorded or the sampler failed."""
    start_us, end_us = selection.span
    if isinstance(selection.recording.node.get("imported"), dict):
        spans = [(gap.from_us, gap.to_us) for gap in unsampled(selection.recording, start_us, end_us)]
    else:
        gaps = selection.recording.gaps(start_us, end_us)
        spans = [(gap.from_us, gap.to_us) for gap in gaps if gap.source in BLINDING]
    return tuple((max(start, start_us), min(end, end_us)) for start, end in sorted(spans))


# --- second counts ----------------------------------------------------------------------------------------------------
# Whole seconds of a window as compaction counted them (store/summary.py), and what is left to be counted.
#
# A window begins and ends inside a second, some parts have no summary (the log; parts of an older version; damage), and
# a filter makes all of them useless: `split` says for each part which seconds are counted already and in which spans
# the samples have to be read. Both together are the window, and no sample is in both.


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


def split_by_second(selection: Selection, column: str) -> Iterator[PartSeconds]:
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
