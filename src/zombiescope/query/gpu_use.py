"""What each GPU did, second by second, and how much less that was than usual.

From the table `gpu_seconds`; nan is "not measured". A GPU is compared with its own minutes before and with nothing
else: 9% is what one training needs, and 9% may be all that is left of another. What is usual is the median, so that a
checkpoint or the start of a job among those minutes does not move it; how much it varies by itself is measured over
spans as long as the one that is asked about.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zombiescope.base.time import HOUR_US, SECOND_US
from zombiescope.store import columns
from zombiescope.store.container_names import NAMELESS, ContainerName, read
from zombiescope.store.reader import Recording

Floats = npt.NDArray[np.float64]

LEVELS = ("utilisation", "power_w", "clock_sm_mhz", "temperature_c", "memory_temperature_c", "reasons")
SLOWED = ("sw_thermal_ns", "hw_thermal_ns", "power_brake_ns")
"""Counters of time in which the GPU held its clocks down for something that is wrong. A power cap is normal."""

LEAST_PAST_S = 8
"""Fewer seconds before say nothing about what is usual."""
LEAST_KNOWN = 0.5
"""Of the seconds that are asked about."""
LEAST_USUAL = 1.0
"""Percent, or watts: a GPU that nobody uses cannot lose anything."""
FELL_RATIO = 0.2
DEVIATIONS = 3.0
SMOOTH_S = 10


@dataclass(frozen=True, slots=True)
class GpuSeries:
    """One GPU; each figure has a value for each second from `start_us` on."""

    gpu: int
    start_us: int
    figures: dict[str, Floats]

    @property
    def seconds(self) -> int:
        return len(self.figures["utilisation"])

    def between(self, name: str, from_us: int, to_us: int) -> Floats:
        """Of the seconds that lie mostly in a span."""
        first, last = (max(0, (at - self.start_us + SECOND_US // 2) // SECOND_US) for at in (from_us, to_us))
        return self.figures[name][first:last]

    def at_us(self, second: int) -> int:
        return self.start_us + second * SECOND_US


@dataclass(frozen=True, slots=True)
class Fall:
    """What a GPU did in a span, against what was usual before it."""

    usual: float
    now: float
    """The mean."""
    lost_s: float
    """Seconds of the usual work that were not done."""
    seconds: int
    """That were measured."""
    is_unusual: bool
    """It fell by a fifth or more, and by more than it varies by itself."""


def load(recording: Recording, start_us: int, end_us: int) -> dict[int, GpuSeries]:
    """By number; empty where no GPU was recorded. Starts at a whole second."""
    start_us = start_us // SECOND_US * SECOND_US
    names = (*LEVELS, *SLOWED)
    rows = recording.table("gpu_seconds", start_us + 1, end_us + 1, ("time", "gpu", *names))
    seconds = max(1, -(-(end_us - start_us) // SECOND_US))
    gpus = columns.numbers(rows.column("gpu"))
    second = np.clip((columns.numbers(rows.column("time")) - 1 - start_us) // SECOND_US, 0, seconds - 1)
    found = {int(gpu): GpuSeries(int(gpu), start_us, {}) for gpu in np.unique(gpus)}
    for name in names:
        column = rows.column(name)
        known, values = columns.present(column), columns.numbers(column)
        for gpu, series in found.items():
            mine = known & (gpus == gpu)
            figures = np.full(seconds, np.nan)
            figures[second[mine]] = values[mine]
            series.figures[name] = figures
    return found


def fall(past: Floats, during: Floats) -> Fall | None:
    """None where one of the two was not measured enough, or where there was nothing to lose."""
    before, now = past[~np.isnan(past)], during[~np.isnan(during)]
    if len(before) < LEAST_PAST_S or not len(now) or len(now) < LEAST_KNOWN * len(during):
        return None
    usual, mean = float(np.median(before)), float(now.mean())
    if usual < LEAST_USUAL:
        return None
    means = _means(before, min(len(now), SMOOTH_S, len(before) // 2))
    spread = 1.4826 * float(np.median(np.abs(means - np.median(means))))
    unusual = mean <= (1 - FELL_RATIO) * usual and usual - mean >= DEVIATIONS * spread
    return Fall(usual, mean, max(0.0, float(((usual - now) / usual).sum())), len(now), unusual)


def falls(series: Floats, past_s: int = 60) -> list[tuple[int, int]]:
    """[first, last) of each time in which a GPU did a fifth less than in the minute before it began; what is not known
    neither begins nor ends one."""
    known = series[~np.isnan(series)]
    if not len(known) or known.min() > (1 - FELL_RATIO) * known.max():
        return []  # most GPUs, most of the time: nothing need be sorted
    usual = _medians_before(series, past_s)
    found: list[tuple[int, int]] = []
    began: int | None = None
    level = 0.0

    def end(first: int, last: int) -> None:
        span = _deep(series[first:last], level)
        if span is not None:
            found.append((first + span[0], first + span[1]))

    for second, value in enumerate(series.tolist()):
        if np.isnan(value):
            continue
        if began is None and value <= (1 - FELL_RATIO) * usual[second] and usual[second] >= LEAST_USUAL:
            began, level = second, float(usual[second])
        elif began is not None and value > (1 - FELL_RATIO) * level:
            end(began, second)
            began = None
    if began is not None:
        end(began, len(series))
    return found


def _deep(values: Floats, usual: float) -> tuple[int, int] | None:
    """Without the seconds at its ends that were hardly below what is usual, as any second may be."""
    deep = np.flatnonzero(values <= (usual + float(np.nanmean(values))) / 2)
    return (int(deep[0]), int(deep[-1]) + 1) if len(deep) else None


def _means(values: Floats, length: int) -> Floats:
    summed = np.concatenate([[0.0], np.cumsum(values)])
    means: Floats = (summed[length:] - summed[:-length]) / length
    return means


def _medians_before(series: Floats, past_s: int) -> Floats:
    """The median of the seconds before each; 0 where too few of them are known."""
    padded = np.concatenate([np.full(past_s, np.nan), series[:-1]]) if len(series) else series
    usual = np.zeros(len(series))
    if not len(series):
        return usual
    windows = np.lib.stride_tricks.sliding_window_view(padded, past_s)
    enough = (~np.isnan(windows)).sum(axis=1) >= LEAST_PAST_S
    usual[enough] = np.nanmedian(windows[enough], axis=1) if enough.any() else 0.0
    return usual


# --- tenants ----------------------------------------------------------------------------------------------------------
# Which processes were on which GPU, from when to when: the table `gpu_processes` as spans.
#
# A row is written when a process comes, when it leaves, and again in every segment; what holds at a moment is therefore
# found within the hour before it. Pids are those of the host and are used again, so a process is told by its start,
# too.


@dataclass(frozen=True, slots=True)
class Tenant:
    """A process on a GPU; `to_us` None: it was still there."""

    gpu: int
    pid: int
    start_ticks: int | None
    comm: str | None
    cgroup: str | None
    unit: str | None
    container: str | None
    pod: str | None
    """Its uid."""
    memory_bytes: int | None
    from_us: int
    to_us: int | None
    named: ContainerName = NAMELESS

    def overlaps(self, from_us: int, to_us: int) -> bool:
        return self.from_us < to_us and (self.to_us is None or self.to_us > from_us)

    @property
    def job(self) -> str:
        """What its processes have in common: the pod, the container, the unit or the cgroup; else the program."""
        return self._owner or f"{self.comm}"

    @property
    def has_owner(self) -> bool:
        """It belongs to more than its own name."""
        return self._owner is not None

    @property
    def _owner(self) -> str | None:
        group = self.cgroup if self.cgroup not in (None, "", "/") else None
        return self.pod or self.container or self.unit or group


def tenants(recording: Recording, start_us: int, end_us: int) -> list[Tenant]:
    """Of a window, in the order in which they came."""
    rows: defaultdict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in columns.records(recording.table("gpu_processes", start_us - HOUR_US, end_us)):
        if row["gpu"] is not None and row["pid"] is not None:
            rows[row["gpu"], row["pid"], row["start_ticks"]].append(row)
    boxes = {row["container"] for same in rows.values() for row in same if row["container"]}
    names = read(recording, start_us, end_us, boxes) if boxes else None
    found = [_tenant(sorted(same, key=lambda row: row["time"]), names) for same in rows.values()]
    return sorted((one for one in found if one.overlaps(start_us, end_us)), key=lambda one: (one.from_us, one.gpu))


def _tenant(rows: list[dict[str, Any]], names: Any) -> Tenant:
    last = rows[-1]
    known = {
        name: next((row[name] for row in reversed(rows) if row[name] is not None), None)
        for name in ("comm", "cgroup", "unit", "container", "pod", "memory_bytes")
    }
    named = NAMELESS if names is None else names.of(known["container"], known["pod"])
    ended_us = last["time"] if last["ended"] else None
    return Tenant(
        last["gpu"], last["pid"], last["start_ticks"], **known, from_us=rows[0]["time"], to_us=ended_us, named=named
    )
