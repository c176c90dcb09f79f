"""Seconds of single cores: which of them the kernel held most, found in one pass over the table `cores`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from zombiescope.base.time import SECOND_US
from zombiescope.query.segment_names import TASK_COLUMNS, NamedTask
from zombiescope.store.columns import Ints, Mask, numbers, present, take, texts
from zombiescope.store.reader import Recording
from zombiescope.store.stacks import NamedFrame
from zombiescope.store.thresholds import KERNEL_COLUMNS


@dataclass(frozen=True, slots=True)
class CoreSecond:
    from_us: int
    to_us: int
    cpu: int
    kernel_ratio: float
    samples: int | None

    @property
    def rank(self) -> tuple[float, int]:
        return self.kernel_ratio, self.samples or 0


def worst_core_second(recording: Recording, start_us: int | None, end_us: int | None) -> CoreSecond | None:
    """Of the ticks that end in (start_us, end_us]: the second with most kernel time, then most samples."""
    worst: CoreSecond | None = None
    after = None if start_us is None else start_us + 1
    until = None if end_us is None else end_us + 1
    wanted = ("time", "interval_us", "cpu", *KERNEL_COLUMNS, "samples")
    for batch in recording.batches("cores", after, until, wanted):
        candidate = _worst_of(batch)
        if candidate and (worst is None or candidate.rank > worst.rank):
            worst = candidate
    return worst


def _worst_of(batch: pa.Table) -> CoreSecond | None:
    batch, cpus = _by_core(batch)
    elapsed, ends = numbers(batch.column("interval_us")), numbers(batch.column("time"))
    kernel_ms, measured = _kernel_ms(batch)
    firsts, lasts, ticks = _seconds(cpus, elapsed)
    usable = (lasts - firsts + 1 == ticks) & measured[firsts]
    if not usable.any():
        return None
    seconds_us = np.add.reduceat(elapsed, firsts)
    ratios = np.clip(np.add.reduceat(kernel_ms, firsts) * 1000 / np.maximum(seconds_us, 1), 0, 1)
    counts = np.add.reduceat(numbers(batch.column("samples")), firsts)
    best = int(np.lexsort((-ends[lasts], counts, np.where(usable, ratios, -1)))[-1])
    count = int(counts[best]) if present(batch.column("samples"))[firsts[best]] else None
    to_us = int(ends[lasts[best]])
    return CoreSecond(to_us - int(seconds_us[best]), to_us, int(cpus[firsts[best]]), float(ratios[best]), count)


def _by_core(batch: pa.Table) -> tuple[pa.Table, Ints]:
    order = np.lexsort((numbers(batch.column("time")), numbers(batch.column("cpu"))))
    ordered = take(batch, order)
    return ordered, numbers(ordered.column("cpu"))


def _kernel_ms(batch: pa.Table) -> tuple[Ints, Mask]:
    """Kernel time of each tick, and whether any of it was measured."""
    known = [present(batch.column(name)) for name in KERNEL_COLUMNS]
    values = [numbers(batch.column(name)) for name in KERNEL_COLUMNS]
    total = np.sum([np.where(mask, value, 0) for mask, value in zip(known, values, strict=True)], axis=0)
    return total, np.any(known, axis=0)


def _seconds(cpus: Ints, elapsed_us: Ints) -> tuple[Ints, Ints, int]:
    """First and last row of each second of each core, and how many ticks a second has."""
    ticks = max(1, round(SECOND_US / max(1.0, float(np.median(elapsed_us)))))
    starts = np.flatnonzero(np.diff(cpus, prepend=-1))
    rank = np.arange(len(cpus)) - np.repeat(starts, np.diff(starts, append=len(cpus)))
    firsts = np.flatnonzero(rank % ticks == 0)
    return firsts, np.append(firsts[1:], len(cpus)) - 1, ticks


# --- its samples ------------------------------------------------------------------------------------------------------
# From ids to names: tasks and stacks of some samples, from the dictionaries of the parts they are in.


def samples_of_core(
    recording: Recording, cpu: int, start_us: int, end_us: int
) -> list[tuple[NamedTask | None, list[NamedFrame]]]:
    """Each sample of one core in a (short) window: who, and the stack, outermost frame first."""
    rows = recording.table("samples", start_us, end_us, ("cpu", "task", "stack"))
    rows = take(rows, np.flatnonzero(numbers(rows.column("cpu")) == cpu))
    task_ids, stack_ids = rows.column("task").to_pylist(), rows.column("stack").to_pylist()
    tasks = tasks_by_id(recording, set(task_ids), start_us, end_us)
    stacks = stacks_by_id(recording, set(stack_ids), start_us, end_us)
    return [(tasks.get(task), stacks.get(stack, [])) for task, stack in zip(task_ids, stack_ids, strict=True)]


def tasks_by_id(recording: Recording, ids: set[int | None], start_us: int, end_us: int) -> dict[int, NamedTask]:
    rows = recording.table("tasks", start_us, end_us, TASK_COLUMNS)
    rows = take(rows, np.flatnonzero(_among(numbers(rows.column("task")), ids)))
    columns = [rows.column(name).to_pylist() for name in TASK_COLUMNS]
    return {task: NamedTask(*rest) for task, *rest in zip(*columns, strict=True)}


def stacks_by_id(recording: Recording, ids: set[int | None], start_us: int, end_us: int) -> dict[int, list[NamedFrame]]:
    rows = recording.table("stacks", start_us, end_us)
    rows = take(rows, np.flatnonzero(_among(numbers(rows.column("stack")), ids)))
    stacks = dict(zip(rows.column("stack").to_pylist(), rows.column("frames").to_pylist(), strict=True))
    used = {frame for frames in stacks.values() for frame in frames}
    names = frames_by_id(recording, used, start_us, end_us)
    unknown = NamedFrame("?", "unknown")
    return {stack: [names.get(frame, unknown) for frame in frames] for stack, frames in stacks.items()}


def frames_by_id(
    recording: Recording, ids: set[int | None], start_us: int, end_us: int
) -> dict[int | None, NamedFrame]:
    rows = recording.table("frames", start_us, end_us, ("frame", "name", "kind"))
    rows = take(rows, np.flatnonzero(_among(numbers(rows.column("frame")), ids)))
    frames, names, kinds = (
        rows.column("frame").to_pylist(),
        texts(rows.column("name")),
        texts(rows.column("kind")),
    )
    return {
        frame: NamedFrame(name or "?", kind or "unknown")
        for frame, name, kind in zip(frames, names, kinds, strict=True)
    }


def _among(values: Ints, ids: set[int | None]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.isin(values, np.fromiter((number for number in ids if number is not None), np.int64))
