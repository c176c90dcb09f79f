"""GPUs as they were in their newest second, how long their clocks were held down, and errors that the driver counts.

Gauges are of the newest second that has a value; a driver that falls silent has no line after SILENT_US, and never the
last one for ever. Errors are the driver's own counters: what they rose by while the agent ran. A fall is a reset.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from zombiescope.agent.metrics import families
from zombiescope.agent.tally import Tally
from zombiescope.store import schema
from zombiescope.store.log import Block

SILENT_US = 60_000_000
_GAUGES = (
    ("utilisation", families.GPU_UTILISATION, 0.01),
    ("power_w", families.GPU_POWER, 1.0),
    ("memory_used_bytes", families.GPU_MEMORY_USED, 1.0),
    ("temperature_c", families.GPU_TEMPERATURE, 1.0),
)
_HELD = ("power_cap", "sync_boost", "sw_thermal", "hw_thermal", "power_brake")
_ERRORS = (
    "ecc_corrected", "ecc_uncorrected", "remapped_corrected", "remapped_uncorrected", "nvlink_errors",
    "nvlink_recoveries", "pcie_replays", "pcie_errors",
)  # fmt: skip


class GpusAccount:
    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._newest_us: dict[tuple[str, str], int] = {}
        """(metric, GPU) -> the second that its gauge is of."""
        self._before: dict[tuple[str, str], int] = {}
        """(GPU, counter) -> as the driver had it last."""

    def update(self, block: Block, counted: bool) -> None:
        if block.table is schema.GPU_SECONDS:
            for row in _rows(block, "time", *(name for name, _, _ in _GAUGES), *(f"{name}_ns" for name in _HELD)):
                self._second(row, counted)
        elif block.table is schema.GPUS:
            for gpu in block.column("gpu"):
                self._tally.add(families.GPU_LOST, 0, str(gpu))
            for row in _rows(block, "state", *_ERRORS):
                self._state(row, counted)

    def _second(self, row: dict[str, Any], counted: bool) -> None:
        gpu, at_us = row["gpu"], row["time"] or 0
        for name, family, scale in _GAUGES:
            if row[name] is not None and at_us >= self._newest_us.get((family, gpu), 0):
                self._newest_us[family, gpu] = at_us
                self._tally.set(family, row[name] * scale, gpu)
        for reason in _HELD:
            held_ns = row[f"{reason}_ns"]
            if held_ns is not None:
                self._tally.add(families.GPU_HELD, max(0, held_ns) / 1e9 if counted else 0, gpu, reason)

    def _state(self, row: dict[str, Any], counted: bool) -> None:
        gpu = row["gpu"]
        self._tally.set(families.GPU_OK, float(row["state"] == "ok"), gpu)
        for name in _ERRORS:
            value = row[name]
            if value is None:
                continue
            before = self._before.get((gpu, name), value)
            self._before[gpu, name] = value
            rose = value - before if value >= before else value
            self._tally.add(families.GPU_ERRORS, rose if counted else 0, gpu, name)

    def publish(self, newest_us: int) -> None:
        """`newest_us`: of the newest frame, whatever is in it."""
        for (family, gpu), at_us in list(self._newest_us.items()):
            if newest_us - at_us > SILENT_US:
                del self._newest_us[family, gpu]
                self._tally.set(family, None, gpu)


def _rows(block: Block, *names: str) -> Iterator[dict[str, Any]]:
    """`gpu` as a label has it, of those that are shown."""
    columns = [block.column(name) for name in ("gpu", *names)]
    for gpu, *values in zip(*columns, strict=True):
        if gpu is not None and 0 <= gpu < families.GPUS_SHOWN:
            yield {"gpu": str(gpu), **dict(zip(names, values, strict=True))}
