"""A hole in the samples of a core that was not stolen: code ran with interrupts off, which no clock can look inside.

The clock of the sampler is an interrupt. While interrupts are off it cannot fire, and /proc/stat loses the time too.
What is seen is a gap far longer than the period; a hypervisor that took the core away makes the same gap, so time
that was stolen rules it out, and so does idle time that is not sampled on some machines.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Symptom

HOLE_US = 100_000
STOLEN_RATIO = 0.05


def find(facts: Facts) -> Iterator[Symptom]:
    cores = facts.cores
    if cores is None:
        return
    stolen = np.nan_to_num(cores.ratios["steal"])
    holes = (cores.holes_us >= HOLE_US) & (stolen < STOLEN_RATIO)
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


def _number(value: float) -> int | None:
    return None if np.isnan(value) else int(value)
