"""Seconds of single cores: which of them the kernel held most, found in one pass over the table `cores`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from zombiescope.base.time import SECOND_US
from zombiescope.store.columns import Ints, Mask, numbers, present, take
from zombiescope.store.reader import Recording
from zombiescope.store.saturation import KERNEL_COLUMNS


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
