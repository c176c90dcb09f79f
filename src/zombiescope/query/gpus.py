"""GPUs over any window: how busy, how hot, why slow, what went wrong, and who was on them.

Read from `gpu_seconds`, `gpus` and `gpu_processes`. None is not measured. What holds at the start of the window was
written before it: every segment says it again, so HOLDS_US before the window are read too. A counter's growth is from
the last row before the window; a fall is a reset, and what came after it counts.

Cost: one pass over the seconds of the window, without their lists of samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Annotated, Any

import numpy as np

from zombiescope.base.time import MINUTE_US, SECOND_US
from zombiescope.kernel import nvml_codes
from zombiescope.model.answer import HIDDEN, Field, derived
from zombiescope.query.containers import Container, containers
from zombiescope.store import columns
from zombiescope.store.columns import Ints
from zombiescope.store.container_names import ContainerName, ContainerNames, uid
from zombiescope.store.reader import Recording

HOLDS_US = 10 * MINUTE_US
LOST_CLOCKS = ("power_cap_ns", "sync_boost_ns", "sw_thermal_ns", "hw_thermal_ns", "power_brake_ns")
COUNTERS = (
    "ecc_corrected", "ecc_uncorrected", "remapped_corrected", "remapped_uncorrected", "remap_pending", "remap_failed",
    "nvlink_errors", "nvlink_recoveries", "pcie_replays", "pcie_errors",
)  # fmt: skip
_FIGURES = (
    "utilisation", "memory_utilisation", "power_w", "memory_used_bytes", "clock_sm_mhz", "temperature_c",
    "memory_temperature_c", "reasons", *LOST_CLOCKS,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that was on a GPU in the window; `to` is null for one that did not leave in it."""

    gpu: Annotated[int, HIDDEN]
    pid: int
    comm: str | None
    unit: str | None
    container: str | None
    container_name: str | None
    pod: str | None
    pod_name: Annotated[str | None, Field(means="namespace/name, where the recorder learnt it")]
    memory_bytes: int | None
    from_us: int
    to_us: int | None


@dataclass(frozen=True, slots=True)
class Gpu:
    """Utilisation in percent; temperatures are the highest of the window."""

    gpu: int
    seconds: Annotated[int, Field(means="how many of the window were measured")]
    utilisation: float | None
    lowest_utilisation: int | None
    highest_utilisation: int | None
    power_w: float | None
    highest_power_w: int | None
    memory_used_bytes: int | None
    clock_sm_mhz: int | None
    lowest_clock_sm_mhz: int | None
    temperature_c: int | None
    memory_temperature_c: int | None
    # From here to `recovery_action`: as the last row of the table `gpus` that holds in the window says.
    name: str | None
    uuid: str | None
    pci: str | None
    driver: str | None
    state: str | None
    memory_bytes: int | None
    power_limit_w: int | None
    clock_sm_max_mhz: int | None
    recovery_action: int | None
    mig: bool | None
    reason_bits: Annotated[int | None, HIDDEN]
    """All that were set at some question."""
    lost_clocks_s: dict[str, float | None]
    counters: Annotated[dict[str, int | None], Field(means="as the driver has them at the end")]
    added: Annotated[dict[str, int | None], Field(means="in the window")]
    processes: Sequence[GpuProcess]

    @derived(Field(means="why its clocks were lowered"), after="mig")
    def reasons(self) -> list[str]:
        return nvml_codes.reasons(self.reason_bits)


_NAMES = [one.name for one in fields(Gpu)]
_SAID = _NAMES[_NAMES.index("name") : _NAMES.index("mig")]


def gpus(recording: Recording, start_us: int, end_us: int) -> list[Gpu]:
    """Every GPU that is known in the window, in the order of their numbers."""
    rows = recording.table("gpu_seconds", start_us, end_us + 1, ("gpu", *_FIGURES))
    number = columns.ids(rows.column("gpu"))
    figures = {name: (columns.numbers(rows.column(name)), columns.present(rows.column(name))) for name in _FIGURES}
    said: dict[int, list[dict[str, Any]]] = {}
    for row in columns.records(recording.table("gpus", start_us - HOLDS_US, end_us + 1)):
        said.setdefault(row["gpu"], []).append(row)
    on = _processes(recording, start_us, end_us)
    known = sorted({*said, *np.unique(number[number >= 0]).tolist()})
    return [_gpu(gpu, number, figures, said.get(gpu, []), start_us, on) for gpu in known]


def _gpu(
    gpu: int,
    number: Ints,
    figures: dict[str, tuple[Ints, Any]],
    said: Sequence[dict[str, Any]],
    start_us: int,
    on: Iterable[GpuProcess],
) -> Gpu:
    mine = number == gpu

    def known(name: str) -> Ints:
        values, there = figures[name]
        chosen: Ints = values[mine & there]
        return chosen

    used, power, clock, reasons = (known(name) for name in ("utilisation", "power_w", "clock_sm_mhz", "reasons"))
    last = said[-1] if said else {}
    return Gpu(
        gpu=gpu,
        seconds=int(mine.sum()),
        utilisation=_mean(used),
        lowest_utilisation=_of(used, np.min),
        highest_utilisation=_of(used, np.max),
        power_w=_mean(power),
        highest_power_w=_of(power, np.max),
        memory_used_bytes=_last(known("memory_used_bytes")),
        clock_sm_mhz=_last(clock),
        lowest_clock_sm_mhz=_of(clock, np.min),
        temperature_c=_of(known("temperature_c"), np.max),
        memory_temperature_c=_of(known("memory_temperature_c"), np.max),
        **{name: last.get(name) for name in _SAID},
        mig=None if last.get("mig") is None else bool(last["mig"]),
        reason_bits=_of(reasons, np.bitwise_or.reduce),
        lost_clocks_s={name.removesuffix("_ns"): _seconds(known(name)) for name in LOST_CLOCKS},
        counters={name: last.get(name) for name in COUNTERS},
        added={name: _added(said, name, start_us) for name in COUNTERS},
        processes=tuple(one for one in on if one.gpu == gpu),
    )


def _processes(recording: Recording, start_us: int, end_us: int) -> list[GpuProcess]:
    """Those that were there at some moment of the window."""
    known: dict[tuple[Any, ...], GpuProcess] = {}
    rows = columns.records(recording.table("gpu_processes", start_us - HOLDS_US, end_us + 1))
    boxed = any(row["container"] or row["pod"] for row in rows)
    boxes = list(containers(recording, start_us, end_us).values()) if boxed else []
    names = ContainerNames(
        {one.id: _name(one) for one in boxes},
        {uid(one.pod_uid): _name(one)._replace(name=None) for one in boxes if one.pod_uid},
    )
    for row in rows:
        who = names.of(row["container"], row["pod"])
        key = (row["gpu"], row["pid"], row["start_ticks"])
        before = known.get(key)
        known[key] = GpuProcess(
            gpu=row["gpu"], pid=row["pid"], comm=row["comm"], unit=row["unit"], container=row["container"],
            pod=row["pod"], pod_name=who.pod_path, container_name=who.name, memory_bytes=row["memory_bytes"],
            from_us=before.from_us if before else row["time"], to_us=row["time"] if row["ended"] else None,
        )  # fmt: skip
    return [one for one in known.values() if one.to_us is None or one.to_us >= start_us]


def _name(one: Container) -> ContainerName:
    return ContainerName(one.name, one.image, one.pod, one.namespace, one.owner)


def _added(said: Sequence[dict[str, Any]], name: str, start_us: int) -> int | None:
    """What a counter grew by since the last row before the window. One that fell began anew at zero."""
    before = [row[name] for row in said if row["time"] <= start_us and row[name] is not None][-1:]
    inside = [row[name] for row in said if row["time"] > start_us and row[name] is not None]
    values: list[int] = [*before, *inside]
    if not values:
        return None
    return sum(now - then if now >= then else now for then, now in pairwise(values))


def _mean(values: Ints) -> float | None:
    return round(float(values.mean()), 2) if len(values) else None


def _of(values: Ints, what: Any) -> int | None:
    return int(what(values)) if len(values) else None


def _last(values: Ints) -> int | None:
    return int(values[-1]) if len(values) else None


def _seconds(values: Ints) -> float | None:
    return round(float(values.sum()) / 1e9, 3) if len(values) else None


@dataclass(frozen=True, slots=True)
class GpuSeries:
    """Utilisation and power over equal steps of a window; None where nothing was measured."""

    at_us: list[float]
    count: int
    """GPUs that were measured at some time."""
    mean: list[float | None]
    lowest: list[float | None]
    lowest_gpu: list[int | None]
    power_w: list[float | None]
    """Of all GPUs together."""


def series(recording: Recording, start_us: int, end_us: int, most: int) -> GpuSeries:
    """At most `most` steps, none shorter than a second."""
    rows = recording.table("gpu_seconds", start_us, end_us + 1, ("time", "gpu", "utilisation", "power_w"))
    gpu = columns.ids(rows.column("gpu"))
    numbers = np.unique(gpu[gpu >= 0])
    if not len(numbers):
        return GpuSeries([], 0, [], [], [], [])
    span_us = max(1, end_us - start_us)
    steps = int(min(most, max(1, span_us // SECOND_US)))
    # A row is of the second that ends at its time: its step is that of the second's middle.
    middle_us = columns.numbers(rows.column("time")) - SECOND_US // 2
    step = np.clip((middle_us - start_us) * steps // span_us, 0, steps - 1)
    used = _grid(rows.column("utilisation"), step, np.searchsorted(numbers, gpu), steps, len(numbers))
    power = _grid(rows.column("power_w"), step, np.searchsorted(numbers, gpu), steps, len(numbers))
    there = ~np.isnan(used).all(axis=1)
    lowest = np.where(np.isnan(used), np.inf, used).argmin(axis=1)
    return GpuSeries(
        at_us=[start_us + at * span_us / steps for at in range(steps)],
        count=len(numbers),
        mean=_values(_nanmean(used), there),
        lowest=_values(used[np.arange(steps), lowest], there),
        lowest_gpu=[int(numbers[at]) if seen else None for at, seen in zip(lowest, there, strict=True)],
        power_w=_values(np.nansum(power, axis=1), ~np.isnan(power).all(axis=1)),
    )


def _grid(column: Any, step: Ints, gpu: Ints, steps: int, gpus: int) -> Any:
    """The mean of each step and GPU; NaN where there is none."""
    there = columns.present(column) & (gpu < gpus)
    place = (step * gpus + gpu)[there]
    counted = np.bincount(place, minlength=steps * gpus)
    added = np.bincount(place, columns.numbers(column)[there].astype(np.float64), minlength=steps * gpus)
    mean = np.full(steps * gpus, np.nan)
    mean[counted > 0] = added[counted > 0] / counted[counted > 0]
    return mean.reshape(steps, gpus)


def _nanmean(grid: Any) -> Any:
    there = ~np.isnan(grid)
    return np.nansum(grid, axis=1) / np.maximum(1, there.sum(axis=1))


def _values(values: Any, there: Any) -> list[float | None]:
    return [round(float(value), 1) if seen else None for value, seen in zip(values, there, strict=True)]
