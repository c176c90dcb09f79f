"""Each core in each second of a window, as arrays [core, second]; nan is "not measured".

From the table `cores`, where there is one. A recording that was imported from a profile alone has none: there the
samples themselves show how busy a core was, because idle samples were kept (`of_samples`), and nothing else is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis.thresholds import SAMPLE_GAP_LONG_US, SAMPLE_GAP_SLACK_US
from zombiescope.model.modes import MODES
from zombiescope.store import columns
from zombiescope.store.reader import Recording
from zombiescope.store.thresholds import BUSY_MODES, KERNEL_MODES

COUNTS = (
    "samples", "idle_samples", "expected_samples", "softirq_net_rx", "softirq_net_tx", "softirq_timer", "softirq_rcu",
    "softirq_sched", "softnet_processed", "softnet_dropped", "softnet_squeezed", "ksoftirqd_delay_us", "run_us",
    "wait_us",
)  # fmt: skip


Grid = npt.NDArray[np.float64]
"""[core, second]"""


@dataclass(frozen=True, slots=True)
class CoreGrid:
    start_us: int
    cpus: tuple[int, ...]
    seconds: int
    ratios: dict[str, Grid]
    """Mode -> part of the elapsed time, 0 to 1."""
    counts: dict[str, Grid]
    """What was added in the second."""
    max_gap_us: Grid
    from_samples: bool = False

    @property
    def kernel(self) -> Grid:
        """System, irq and softirq together."""
        return self._together(KERNEL_MODES)

    @property
    def busy(self) -> Grid:
        return self._together(BUSY_MODES)

    def _together(self, modes: tuple[str, ...]) -> Grid:
        total: Grid = np.minimum(np.nansum([self.ratios[mode] for mode in modes], axis=0), 1.0)
        return total

    def node_busy(self) -> npt.NDArray[np.float64]:
        """The mean over the measured cores, second by second: the number that hides one core among many. Not a number
        in a second that no tick fell into: nobody knows whether there was room."""
        known = self.measured.sum(axis=0)
        mean: npt.NDArray[np.float64] = np.where(self.measured, self.busy, 0.0).sum(axis=0) / np.maximum(known, 1)
        return np.where(known > 0, mean, np.nan)

    @property
    def measured(self) -> npt.NDArray[np.bool_]:
        return ~np.isnan(self.ratios["system"])

    @property
    def holes_us(self) -> Grid:
        """The longest gap in the samples of each second, but for gaps that idle time explains.

        There are machines that deliver no sample at all from the idle task of a core. /proc/stat then knows of idle
        time that no sample was taken in, and a gap that fits into it is not a hole. Where the window of such a machine
        begins in a gap, how much of it was idle is not known, and it is taken to be all of it.
        """
        idle = np.nansum([self.ratios["idle"], self.ratios["iowait"]], axis=0)
        expected = np.maximum(np.nan_to_num(self.counts["expected_samples"]), 1)
        seen = np.nan_to_num(self.counts["idle_samples"] / expected, nan=1.0)  # not counted: then it explains nothing
        # Two ticks may fall into one second of the grid; then there is idle time of both.
        unseen_us = np.maximum(idle - seen, 0) * SECOND_US * expected / max(float(np.median(expected)), 1.0)
        # A gap is reported when it ends, and may begin a second before.
        not_known_us = SECOND_US * float((unseen_us > SECOND_US / 2).any())
        before_us = np.where(np.isnan(self.ratios["idle"]), not_known_us, unseen_us)[:, :-1]
        unseen_us += np.pad(before_us, ((0, 0), (1, 0)), constant_values=not_known_us)
        gaps = np.nan_to_num(self.max_gap_us)
        explained = unseen_us >= np.minimum(gaps, SAMPLE_GAP_LONG_US) - SAMPLE_GAP_SLACK_US
        holes: Grid = np.where(explained, 0.0, gaps)
        return holes

    def second(self, at_us: int) -> int:
        """Which second of the grid it is in; outside of the window it is below 0, or beyond the last."""
        return (at_us - self.start_us) // SECOND_US

    def at_us(self, second: int) -> int:
        return self.start_us + second * SECOND_US

    def row(self, cpu: int) -> int | None:
        return self.cpus.index(cpu) if cpu in self.cpus else None

    def mean(self, grid: Grid, first: int = 0, last: int | None = None) -> float | None:
        part = grid[:, first:last]
        return float(np.nanmean(part)) if part.size and not np.isnan(part).all() else None


def load(
    recording: Recording, start_us: int, end_us: int, modes: Sequence[str] = MODES, counts: Sequence[str] = COUNTS
) -> CoreGrid | None:
    """None when no tick was recorded in the window. Modes and counts that are not asked for are "not measured"."""
    names = (*(f"{mode}_ms" for mode in modes), *counts)
    wanted = ("time", "interval_us", "cpu", *names, "max_gap_us")
    batches = list(recording.batches("cores", start_us + 1, end_us + 1, wanted))
    if not batches:
        return None
    cpus = tuple(sorted({int(cpu) for batch in batches for cpu in np.unique(columns.numbers(batch.column("cpu")))}))
    seconds = max(1, -(-(end_us - start_us) // SECOND_US))
    sums = _Sums(cpus, seconds, names)
    for batch in batches:
        sums.add(batch, start_us)
    return sums.grid(start_us)


class _Sums:
    def __init__(self, cpus: Sequence[int], seconds: int, names: Sequence[str]) -> None:
        self.cpus, self.seconds, self.names = tuple(cpus), seconds, names
        self.place = np.full(max(cpus, default=0) + 1, -1, np.int64)
        self.place[list(cpus)] = np.arange(len(cpus))
        self.totals: dict[str, Grid] = {}
        self.elapsed: dict[str, Grid] = {}
        self.gap = np.full(len(self.cpus) * seconds, np.nan)

    def add(self, table: pa.Table, start_us: int) -> None:
        interval = columns.numbers(table.column("interval_us"))
        middle = columns.numbers(table.column("time")) - interval // 2
        second = np.clip((middle - start_us) // SECOND_US, 0, self.seconds - 1)
        at = self.place[columns.numbers(table.column("cpu"))] * self.seconds + second
        for name in self.names:
            column = table.column(name)
            known = columns.present(column)
            if known.any():
                self._sum(name, at[known], columns.numbers(column)[known].astype(float), interval[known])
        column = table.column("max_gap_us")
        known = columns.present(column)
        np.fmax.at(self.gap, at[known], columns.numbers(column)[known].astype(float))

    def _sum(self, name: str, at: npt.NDArray[np.int64], values: Grid, interval: npt.NDArray[np.int64]) -> None:
        if name not in self.totals:
            self.totals[name], self.elapsed[name] = np.zeros((2, len(self.gap)))
        np.add.at(self.totals[name], at, values)
        np.add.at(self.elapsed[name], at, interval.astype(float))

    def grid(self, start_us: int) -> CoreGrid:
        shape = (len(self.cpus), self.seconds)
        nothing = np.full(shape, np.nan)
        ratios, counts = {}, {}
        for mode in MODES:
            name = f"{mode}_ms"
            ratios[mode] = nothing if name not in self.totals else np.clip(self._ratio(name), 0, 1).reshape(shape)
        for name in COUNTS:
            counts[name] = nothing if name not in self.totals else self._count(name).reshape(shape)
        return CoreGrid(start_us, self.cpus, self.seconds, ratios, counts, self.gap.reshape(shape))

    def _ratio(self, name: str) -> Grid:
        elapsed = self.elapsed[name]
        ratio: Grid = np.divide(self.totals[name] * 1000, elapsed, out=np.full(len(elapsed), np.nan), where=elapsed > 0)
        return ratio

    def _count(self, name: str) -> Grid:
        return np.where(self.elapsed[name] > 0, self.totals[name], np.nan)
