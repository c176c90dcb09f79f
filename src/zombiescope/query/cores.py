"""Each core over any window: `mpstat -P ALL` for the past, and the longest time it was held by the kernel.

Read from the table `cores`. Ratios are parts of the elapsed time, 0 to 1; None where a mode was not
measured. A tick belongs to the window when it ends in it. What "saturated" means stands in thresholds.py; a
hole in the data ends a run.

Cost: one pass over the ticks, part by part; memory does not grow with the window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zombiescope.model.answer import FLAT, Field
from zombiescope.model.modes import MODES, ModesBusy
from zombiescope.query.core_shares import fitted
from zombiescope.store import columns
from zombiescope.store.columns import Ints, Mask
from zombiescope.store.reader import Recording
from zombiescope.store.thresholds import BUSY_MODES, KERNEL_MODES, SATURATED_RATIO, ticks_judged_together

_COLUMNS = ("time", "interval_us", "cpu", *(f"{mode}_ms" for mode in MODES))

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Busiest:
    """The tick (or the half second, where ticks are shorter) that starts at `at`."""

    at_us: int
    busy: float


@dataclass(frozen=True, slots=True)
class Core:
    cpu: Annotated[int, Field("core", "number")]
    modes: Annotated[ModesBusy, FLAT]
    longest_saturation_s: Annotated[float | None, Field("saturated", "duration")]
    longest_busy_s: float | None
    busiest: Annotated[Busiest | None, Field("busiest")]


@dataclass(frozen=True, slots=True)
class CoresView:
    """`aggregate` is the mean over the cores: the number that hides one saturated core among many."""

    interval_s: float | None
    aggregate: ModesBusy
    cores: tuple[Core, ...]


def cores(recording: Recording, start_us: int | None = None, end_us: int | None = None) -> CoresView:
    """Every core that has a tick which ends in (start_us, end_us]."""
    accounts: dict[int, _Account] = {}
    elapsed_us = ticks_seen = 0
    after = None if start_us is None else start_us + 1
    until = None if end_us is None else end_us + 1
    for batch in recording.batches("cores", after, until, _COLUMNS):
        cpus = columns.numbers(batch.column("cpu"))
        interval_us = int(np.median(columns.numbers(batch.column("interval_us"))))
        elapsed_us += int(columns.numbers(batch.column("interval_us")).sum())
        ticks_seen += len(batch)
        order = np.lexsort((columns.numbers(batch.column("time")), cpus))
        ticks = _Ticks.of(batch)
        bounds = np.flatnonzero(np.diff(cpus[order], prepend=-1, append=-1))
        for first, last in pairwise(bounds):
            cpu = int(cpus[order[first]])
            accounts.setdefault(cpu, _Account()).add(ticks.take(order[first:last]), interval_us)
    found = tuple(accounts[cpu].core(cpu) for cpu in sorted(accounts))
    return CoresView(elapsed_us / ticks_seen / 1e6 if ticks_seen else None, _mean(found), found)


def _mean(found: tuple[Core, ...]) -> ModesBusy:
    def mean(mode: str) -> float | None:
        ratios = [ratio for core in found if (ratio := getattr(core.modes, mode)) is not None]
        return sum(ratios) / len(ratios) if ratios else None

    return ModesBusy(*(mean(mode) for mode in (*MODES, "busy")))


@dataclass(frozen=True, slots=True)
class _Ticks:
    """Ticks of one core in the order of time; milliseconds of each mode are nan where there is no value."""

    ends_us: Ints
    elapsed_us: Ints
    ms: dict[str, Floats]

    @classmethod
    def of(cls, batch: pa.Table) -> _Ticks:
        ms = {}
        for mode in MODES:
            column = batch.column(f"{mode}_ms")
            ms[mode] = np.where(columns.present(column), columns.numbers(column), np.nan)
        return cls(columns.numbers(batch.column("time")), columns.numbers(batch.column("interval_us")), ms)

    def take(self, rows: Ints) -> _Ticks:
        return _Ticks(self.ends_us[rows], self.elapsed_us[rows], {mode: ms[rows] for mode, ms in self.ms.items()})

    def together(self, ticks: int) -> _Ticks:
        """Every `ticks` ticks as one; the rest at the end joins the last."""
        if ticks == 1 or len(self.ends_us) < ticks:
            return self
        firsts = np.arange(len(self.ends_us) // ticks) * ticks
        lasts = np.append(firsts[1:], len(self.ends_us)) - 1
        sums = {mode: np.add.reduceat(ms, firsts) for mode, ms in self.ms.items()}
        return _Ticks(self.ends_us[lasts], np.add.reduceat(self.elapsed_us, firsts), sums)


def _ratio(ticks: _Ticks, modes: tuple[str, ...]) -> Floats:
    """The sum of some modes by elapsed time; a mode without a value counts as none unless all lack one."""
    stacked = np.stack([ticks.ms[mode] for mode in modes])
    total = np.where(np.isnan(stacked).all(axis=0), np.nan, np.nansum(stacked, axis=0))
    ratio: Floats = np.clip(total * 1000.0 / np.maximum(ticks.elapsed_us, 1), 0.0, 1.0)
    return ratio


@dataclass(slots=True)
class _Run:
    """The longest stretch of hot ticks, over any number of batches."""

    longest_us: int = 0
    measured: bool = False
    _current_us: int = 0
    _end_us: int | None = None

    def add(self, ticks: _Ticks, ratios: Floats) -> None:
        hot: Mask = ratios >= SATURATED_RATIO  # nan is not hot
        self.measured |= not bool(np.isnan(ratios).all())
        elapsed = ticks.elapsed_us
        before = np.append(ticks.ends_us[0] - elapsed[0] if self._end_us is None else self._end_us, ticks.ends_us[:-1])
        follows = (ticks.ends_us - elapsed) - before < elapsed
        total = np.cumsum(np.where(hot, elapsed, 0)) + (self._current_us if follows[0] else 0)
        # Where a run starts anew, what was added up before it is taken off again.
        starts = np.where(hot, np.where(follows, 0, total - elapsed), total)
        lengths = total - np.maximum.accumulate(starts)
        self.longest_us = max(self.longest_us, int(lengths.max()))
        self._current_us = int(lengths[-1])
        self._end_us = int(ticks.ends_us[-1])

    @property
    def longest_s(self) -> float | None:
        return self.longest_us / 1e6 if self.measured else None


@dataclass(slots=True)
class _Account:
    """What is added up about one core."""

    ms: dict[str, float] = field(default_factory=lambda: dict.fromkeys(MODES, 0.0))
    elapsed_us: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MODES, 0))
    saturated: _Run = field(default_factory=_Run)
    busy: _Run = field(default_factory=_Run)
    busiest: Busiest | None = None

    def add(self, ticks: _Ticks, interval_us: int) -> None:
        for mode, ms in ticks.ms.items():
            self.ms[mode] += float(np.nansum(ms))
            self.elapsed_us[mode] += int(ticks.elapsed_us[~np.isnan(ms)].sum())
        judged = ticks.together(ticks_judged_together(interval_us))
        busy = _ratio(judged, BUSY_MODES)
        self.saturated.add(judged, _ratio(judged, KERNEL_MODES))
        self.busy.add(judged, busy)
        if not np.isnan(busy).all():
            top = int(np.nanargmax(busy))
            if self.busiest is None or busy[top] > self.busiest.busy:
                self.busiest = Busiest(int(judged.ends_us[top] - judged.elapsed_us[top]), float(busy[top]))

    def core(self, cpu: int) -> Core:
        measured = {mode: ratio for mode in MODES if (ratio := self._ratio(mode)) is not None}
        ratios = dict.fromkeys(MODES) | fitted(measured)
        modes = ModesBusy(**ratios, busy=_sum_of(ratios, BUSY_MODES))
        return Core(cpu, modes, self.saturated.longest_s, self.busy.longest_s, self.busiest)

    def _ratio(self, mode: str) -> float | None:
        elapsed_us = self.elapsed_us[mode]
        return max(0.0, self.ms[mode] * 1000 / elapsed_us) if elapsed_us else None


def _sum_of(ratios: Mapping[str, float | None], modes: tuple[str, ...]) -> float | None:
    known = [ratio for mode in modes if (ratio := ratios[mode]) is not None]
    return min(1.0, sum(known)) if known else None
