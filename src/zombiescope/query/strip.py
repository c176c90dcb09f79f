"""Every core over a window in a fixed number of columns: the picture that one lost core among many shows in.

A column shows for each core its worst tick in it (most kernel time, then most busy), because a mean over minutes
hides the two seconds that matter; beside it stands the mean over all cores and ticks, which is what hides them. A
tick belongs to the column in which its middle is. Bytes 0..254 are parts of the tick's time, 255 is not measured.

Cost: one pass over eight columns of the table `cores`, part by part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zombiescope.base.time import SECOND_US
from zombiescope.model.modes import DRAWN_MODES as MODES
from zombiescope.query.core_shares import fitted
from zombiescope.query.selection import Selection
from zombiescope.store import columns
from zombiescope.store.columns import Ints
from zombiescope.store.reader import Recording

NOT_MEASURED = 255
FULL = 254
STORED = ("user_ms", "nice_ms", "system_ms", "irq_ms", "softirq_ms", "steal_ms", "iowait_ms")

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


def strip(
    recording: Recording, start_us: int, end_us: int, columns: int, ticks_of: Iterable[pa.Table] | None = None
) -> Strip:
    """At most as many columns as the window has ticks, so that none is empty by the choice of their number. `ticks_of`:
    rows like those of the table `cores`, where something else says how busy the cores were."""
    ticks = max(1, round((end_us - start_us) / (float(recording.node.get("interval_s") or 1) * 1e6)))
    picture = _Picture(start_us, end_us, min(columns, ticks))
    stored = ("time", "interval_us", "cpu", *STORED)
    for batch in _ahead(recording.batches("cores", start_us + 1, end_us + 1, stored)) if ticks_of is None else ticks_of:
        picture.add(batch)
    return picture.strip(_online(recording))


def _ahead(batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same, the next one read while this one is worked on."""
    with ThreadPoolExecutor(1) as reader:
        waiting = reader.submit(next, batches, None)
        while (batch := waiting.result()) is not None:
            waiting = reader.submit(next, batches, None)
            yield batch


class _Picture:
    def __init__(self, start_us: int, end_us: int, columns: int) -> None:
        self.start_us, self.end_us, self.columns = start_us, end_us, columns
        self.width = 0
        self.modes = np.full((len(MODES), columns, 0), NOT_MEASURED, np.uint8)
        self.score = np.full((columns, 0), -1, np.int32)
        self.busy, self.kernel, self.ticks = np.zeros((3, columns))

    def add(self, batch: pa.Table) -> None:
        cpu, interval, time_us = (columns.numbers(batch.column(name)) for name in ("cpu", "interval_us", "time"))
        known = (cpu >= 0) & (interval > 0)
        for name in ("user_ms", "system_ms"):
            if batch.column(name).null_count:
                known &= columns.present(batch.column(name))
        if not known.any():
            return
        ms = [columns.ids(batch.column(name)) for name in STORED]
        if not known.all():
            cpu, interval, time_us, *ms = (each[known] for each in (cpu, interval, time_us, *ms))
        shares = _fitted(_shares([_both(ms[0], ms[1]), *ms[2:]], interval), len(cpu))
        middle = time_us - interval // 2 - self.start_us
        column = np.clip(middle * self.columns // max(1, self.end_us - self.start_us), 0, self.columns - 1)
        kernel = _together([shares[at] for at in (1, 2, 3)], len(cpu))
        busy = _together([*(shares[at] for at in (0, 4)), kernel], len(cpu))
        self._widen(int(cpu.max()) + 1)
        self.ticks += np.bincount(column, minlength=self.columns)
        self.kernel += np.bincount(column, kernel, self.columns)
        self.busy += np.bincount(column, busy, self.columns)
        self._worst(column * self.width + cpu, kernel.astype(np.int32) * 256 + busy, shares)

    def _worst(self, cell: Ints, score: npt.NDArray[np.int32], shares: list[Bytes | None]) -> None:
        """The tick with most kernel time, then most busy; of equal ones the last."""
        best = self.score.reshape(-1)
        np.maximum.at(best, cell, score)
        chosen = np.flatnonzero(score == best[cell])
        cell = cell[chosen]
        for mode, share in zip(self.modes.reshape(len(MODES), -1), shares, strict=True):
            mode[cell] = 0 if share is None else share[chosen]

    def _widen(self, width: int) -> None:
        if width <= self.width:
            return
        more = width - self.width
        self.modes = np.concatenate(
            [self.modes, np.full((len(MODES), self.columns, more), NOT_MEASURED, np.uint8)], axis=2
        )
        self.score = np.concatenate([self.score, np.full((self.columns, more), -1, np.int32)], axis=1)
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


def _both(first: Ints, second: Ints) -> Ints:
    """User and nice; what was not measured is -1 and adds nothing."""
    return np.maximum(first, 0) + np.maximum(second, 0) if second.any() else first


def _shares(ms: list[Ints], interval_us: Ints) -> list[Bytes | None]:
    """Of each mode 0 to FULL of the tick; None where it has nothing in any of them."""
    same = bool((interval_us == interval_us[0]).all())
    scale = np.float32(1000 * FULL / int(interval_us[0])) if same else (1000 * FULL / interval_us).astype(np.float32)
    found: list[Bytes | None] = []
    for each in ms:
        if each.any():
            shares = np.clip(each.astype(np.float32) * scale + np.float32(0.5), 0, FULL)
            found.append(shares.astype(np.uint8))
        else:
            found.append(None)
    return found


def _fitted(shares: list[Bytes | None], rows: int) -> list[Bytes | None]:
    """Modes of one tick that add up to no more than the tick; hardly any need it."""
    total = np.zeros(rows, np.uint16)
    for share in shares:
        if share is not None:
            total += share
    over = np.flatnonzero(total > FULL)
    if not len(over):
        return shares
    known = {mode: share for mode, share in zip(MODES, shares, strict=True) if share is not None}
    cut = fitted({mode: share[over].astype(np.float32) for mode, share in known.items()}, FULL, lower=np.minimum)
    for mode, share in known.items():
        share[over] = cut[mode].astype(np.uint8)
    return shares


def _together(shares: list[Bytes | None], rows: int) -> Bytes:
    total = np.zeros(rows, np.uint16)
    for share in shares:
        if share is not None:
            total += share
    return np.minimum(total, FULL).astype(np.uint8)


def _online(recording: Recording) -> tuple[int, ...]:
    cpus = recording.node.get("cpus")
    online = cpus.get("online", ()) if isinstance(cpus, dict) else ()
    return tuple(cpu for cpu in online if isinstance(cpu, int) and 0 <= cpu <= 8191)


# --- ticks ------------------------------------------------------------------------------------------------------------
# How busy each core was, from its samples: for a profile that was imported without any counters beside it.
#
# A second of a core is as long as the most samples that any core has in any second; what of it was sampled in user
# space or in the kernel is user or system time. Whatever else a counter shows (irq, softirq, steal) is not known from
# here.

_MOST_CELLS = 20_000_000


def core_ticks(selection: Selection, unknown: tuple[str, ...]) -> pa.Table | None:
    """Rows like those of the table `cores`, one for each second and core; None where samples show nothing."""
    known = selection.stacks
    idle, kernel = known.idle(), known.in_kernel()
    first = selection.start_us // SECOND_US
    seconds = (selection.end_us - 1) // SECOND_US - first + 1
    counts = np.zeros((3, seconds, 0), np.int64)
    for time_us, cpu, stack in selection.columns("time", "cpu", "stack"):
        width = int(cpu.max(initial=-1)) + 1
        if seconds * width > _MOST_CELLS:
            return None
        if width > counts.shape[2]:
            counts = np.concatenate([counts, np.zeros((3, seconds, width - counts.shape[2]), np.int64)], axis=2)
        rows = known.rows_of(stack)
        kind = np.where(idle[rows], 2, np.where(kernel[rows], 1, 0))
        there = cpu >= 0
        cell = (kind * seconds + time_us // SECOND_US - first) * counts.shape[2] + cpu
        counts += np.bincount(cell[there], minlength=counts.size).reshape(counts.shape)
    whole = int(counts.sum(axis=0).max(initial=0))
    if not whole:
        return None
    second, cpu = np.nonzero(counts.sum(axis=0))
    user, system = (counts[kind, second, cpu] * 1000 // whole for kind in (0, 1))
    measured = {"time": (first + second + 1) * SECOND_US, "interval_us": np.full(len(cpu), SECOND_US), "cpu": cpu,
                "user_ms": user, "system_ms": system}  # fmt: skip
    return pa.table({name: _column(values) for name, values in measured.items()}
                    | {name: pa.nulls(len(cpu), pa.int64()) for name in unknown if name not in measured})  # fmt: skip


def _column(values: Ints) -> pa.Array:
    return columns.ints_array(values.astype(np.int64), None, pa.int64())
