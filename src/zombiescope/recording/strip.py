"""Every core over a window in a fixed number of columns: the picture that one lost core among many shows in.

A column shows for each core its worst tick in it (most kernel time, then most busy), because a mean over minutes
hides the two seconds that matter; beside it stands the mean over all cores and ticks, which is what hides them. A
tick belongs to the column in which its middle lies. Bytes 0..254 are parts of the tick's time, 255 is not measured.

Cost: one pass over eight columns of the table `cores`, part by part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zombiescope.recording import columns
from zombiescope.recording.columns import Ints
from zombiescope.recording.reader import Recording

MODES = ("user", "system", "irq", "softirq", "steal", "iowait")
"""`user` includes nice."""
NOT_MEASURED = 255
FULL = 254
_STORED = ("user_ms", "nice_ms", "system_ms", "irq_ms", "softirq_ms", "steal_ms", "iowait_ms")

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Strip:
    """modes[mode][column * len(cpus) + row]; nan and -1 stand where a column has no tick."""

    start_us: int
    end_us: int
    columns: int
    cpus: tuple[int, ...]
    modes: dict[str, Bytes]
    average_busy: Floats
    average_kernel: Floats
    worst_core: npt.NDArray[np.int32]

    @property
    def column_us(self) -> float:
        return (self.end_us - self.start_us) / self.columns


def strip(recording: Recording, start_us: int, end_us: int, columns: int) -> Strip:
    """At most as many columns as the window has ticks, so that none is empty by the choice of their number."""
    ticks = max(1, round((end_us - start_us) / (float(recording.node.get("interval_s") or 1) * 1e6)))
    picture = _Picture(start_us, end_us, min(columns, ticks))
    for batch in recording.batches("cores", start_us + 1, end_us + 1, ("time", "interval_us", "cpu", *_STORED)):
        picture.add(batch)
    return picture.strip(_online(recording))


class _Picture:
    def __init__(self, start_us: int, end_us: int, columns: int) -> None:
        self.start_us, self.end_us, self.columns = start_us, end_us, columns
        self.width = 0
        self.modes = np.full((len(MODES), columns, 0), NOT_MEASURED, np.uint8)
        self.score = np.full((columns, 0), -1, np.int64)
        self.busy, self.kernel, self.ticks = np.zeros((3, columns))

    def add(self, batch: pa.Table) -> None:
        cpu = columns.numbers(batch.column("cpu"))
        interval = columns.numbers(batch.column("interval_us"))
        stored = [columns.present(batch.column(name)) for name in ("user_ms", "system_ms")]
        known = (cpu >= 0) & (interval > 0) & stored[0] & stored[1]
        if not known.any():
            return
        whole = bool(known.all())
        cpu, interval = (cpu, interval) if whole else (cpu[known], interval[known])
        time_us = columns.numbers(batch.column("time")) if whole else columns.numbers(batch.column("time"))[known]
        ms = [_ms(batch.column(name), None if whole else known) for name in _STORED]
        shares = _shares([ms[0] + ms[1], *ms[2:]], interval)
        middle = time_us - interval // 2 - self.start_us
        column = np.clip(middle * self.columns // max(1, self.end_us - self.start_us), 0, self.columns - 1)
        self._widen(int(cpu.max()) + 1)
        self._mean(column, shares)
        self._worst(column * self.width + cpu, shares)

    def _mean(self, column: Ints, shares: Ints) -> None:
        kernel = np.minimum(shares[1] + shares[2] + shares[3], FULL)
        busy = np.minimum(shares[:5].sum(axis=0), FULL)
        self.ticks += np.bincount(column, minlength=self.columns)
        self.kernel += np.bincount(column, kernel, self.columns)
        self.busy += np.bincount(column, busy, self.columns)

    def _worst(self, cell: Ints, shares: Ints) -> None:
        """The tick with most kernel time, then most busy; of equal ones the last."""
        score = (shares[1] + shares[2] + shares[3]) * 2048 + shares[:5].sum(axis=0)
        best = self.score.reshape(-1)
        np.maximum.at(best, cell, score)
        chosen = np.flatnonzero(score == best[cell])
        flat = self.modes.reshape(len(MODES), -1)
        flat[:, cell[chosen]] = np.minimum(shares[:, chosen], FULL).astype(np.uint8)

    def _widen(self, width: int) -> None:
        if width <= self.width:
            return
        more = width - self.width
        self.modes = np.concatenate(
            [self.modes, np.full((len(MODES), self.columns, more), NOT_MEASURED, np.uint8)], axis=2
        )
        self.score = np.concatenate([self.score, np.full((self.columns, more), -1, np.int64)], axis=1)
        self.width = width

    def strip(self, online: tuple[int, ...]) -> Strip:
        seen = np.flatnonzero((self.score >= 0).any(axis=0)).tolist()
        cpus = tuple(sorted({*seen, *online}))
        self._widen(max(cpus, default=-1) + 1)
        rows = list(cpus)
        score = self.score[:, rows]
        measured = score.max(axis=1, initial=-1) >= 0
        worst = np.where(measured, np.array([*cpus, -1])[score.argmax(axis=1) if rows else -1], -1)
        with np.errstate(invalid="ignore"):
            busy, kernel = (total / self.ticks / FULL for total in (self.busy, self.kernel))
        return Strip(
            self.start_us,
            self.end_us,
            self.columns,
            cpus,
            {mode: self.modes[number][:, rows].reshape(-1) for number, mode in enumerate(MODES)},
            busy.astype(np.float32),
            kernel.astype(np.float32),
            worst.astype(np.int32),
        )


def _ms(column: pa.ChunkedArray, known: npt.NDArray[np.bool_] | None) -> Ints:
    values = np.maximum(columns.ids(column), 0)
    return values if known is None else values[known]


def _shares(ms: list[Ints], interval_us: Ints) -> Ints:
    """[mode, row], 0 to FULL of the tick."""
    return np.stack([np.minimum((each * (1000 * FULL) + interval_us // 2) // interval_us, FULL) for each in ms])


def _online(recording: Recording) -> tuple[int, ...]:
    cpus = recording.node.get("cpus")
    online = cpus.get("online", ()) if isinstance(cpus, dict) else ()
    return tuple(cpu for cpu in online if isinstance(cpu, int) and 0 <= cpu <= 8191)
