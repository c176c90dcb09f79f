"""A hole in the samples of a core that was not stolen: code ran with interrupts off, which no clock can look inside.

The clock of the sampler is an interrupt. While interrupts are off it cannot fire, and /proc/stat loses the time too.
What is seen is a gap far longer than the period; a hypervisor that took the core away makes the same gap, so time
that was stolen rules it out, and so does idle time that some machines do not sample. Not every hypervisor tells what it
took: a hole in all cores at once is the whole machine standing still, and no code of its own does that to all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from zombiescope.diagnosis.core_grid import CoreGrid
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Symptom

HOLE_US = 100_000
STOLEN_RATIO = 0.05
ALIKE_RATIO = 0.8
MACHINE_US = 500_000
"""Virtual machines are stopped for 100 to 200 ms now and then, and nobody notices."""


def find(facts: Facts) -> Iterator[Symptom]:
    cores = facts.cores
    if cores is None:
        return
    stolen = np.nan_to_num(cores.ratios["steal"])
    holes = (cores.holes_us >= HOLE_US) & (stolen < STOLEN_RATIO)
    for second in np.flatnonzero(_at_once(cores, holes)).tolist():
        if np.nan_to_num(cores.max_gap_us[:, second]).max() >= MACHINE_US:
            yield _machine(cores, second)
        holes[:, second] = False
    for row, second in zip(*np.nonzero(holes), strict=True):
        gap_us = int(cores.max_gap_us[row, second])
        expected, got = (cores.counts[name][row, second] for name in ("expected_samples", "samples"))
        cpu = cores.cpus[int(row)]
        yield Symptom(
            "stall",
            cores.at_us(int(second)),
            cores.at_us(int(second) + 1),
            f"core {cpu} took no interrupt for {gap_us / 1000:.0f} ms: code ran with interrupts off",
            "warning",
            cpu,
            facts={
                "gap_us": gap_us,
                "expected_samples": _number(expected),
                "samples": _number(got),
                "interrupts_off": True,
            },
        )


def _at_once(cores: CoreGrid, holes: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Seconds in which every core, of two or more, has a hole, and all are about as long."""
    gaps = np.nan_to_num(cores.max_gap_us)
    alike: npt.NDArray[np.bool_] = gaps.min(axis=0) >= ALIKE_RATIO * gaps.max(axis=0)
    together: npt.NDArray[np.bool_] = holes.all(axis=0) & alike & (len(cores.cpus) > 1)
    return together


def _machine(cores: CoreGrid, second: int) -> Symptom:
    gap_us = int(np.nan_to_num(cores.max_gap_us[:, second]).max())
    return Symptom(
        "steal",
        cores.at_us(second),
        cores.at_us(second + 1),
        f"all {len(cores.cpus)} cores took no interrupt for {gap_us / 1000:.0f} ms at once: the machine stood still",
        "warning",
        group="the machine",
        facts={"ratio": min(gap_us / 1e6, 1.0), "gap_us": gap_us, "at_once": True},
    )


def _number(value: float) -> int | None:
    return None if np.isnan(value) else int(value)
