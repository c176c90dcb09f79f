"""A core that the others interrupt thousands of times a second: TLB shootdowns and other function calls.

Each takes 1 to 5 us from a core that was doing something else, and the sender waits for the slowest. No task need be in
the kernel for long: measured, 21,000 a second on two cores with 0.6 of a CPU in the sender. One core is enough, because
on a large node the average hides it; and what a core takes at any time is its usual. TLB counts are a part of CAL on
some kernels and beside it on others, so the larger of the two is reported and not their sum.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.spans import runs
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import (
    INTERRUPT_STORM_GROWN_FACTOR,
    INTERRUPT_STORM_LEAST_READINGS,
    INTERRUPT_STORM_LEAST_US,
)
from zombiescope.store.columns import Mask
from zombiescope.store.thresholds import CALLS_ON_A_CORE_PER_S

_NAMES = {"TLB": "TLB shootdowns", "CAL": "function calls"}


def find(facts: Facts) -> Iterator[Symptom]:
    found: list[Symptom] = []
    for label in _NAMES:
        for symptom in _storms(facts, label):
            if not any(one.from_us < symptom.to_us and symptom.from_us < one.to_us for one in found):
                found.append(symptom)
    yield from found


def _storms(facts: Facts, label: str) -> Iterator[Symptom]:
    times, cpus, counts = facts.interrupts_of_cores(label)
    if len(times) < 2 or not len(cpus):
        return
    per_s = counts[:, 1:] / np.maximum(np.diff(times), 1) * 1e6
    hot = _beyond_usual(per_s)
    for first, last in runs(np.asarray(hot.any(axis=0)), bridge=1):
        from_us, to_us = int(times[first]), int(times[last])
        if to_us - from_us < INTERRUPT_STORM_LEAST_US:
            continue
        part = counts[:, first + 1 : last + 1].sum(axis=1)
        row, many = int(part.argmax()), int(hot[:, first:last].any(axis=1).sum())
        rate = int(part[row]) / (to_us - from_us) * 1e6
        which = f"core {cpus[row]} was" if many == 1 else f"{many} cores, core {cpus[row]} the most, were"
        text = f"{which} interrupted by other cores {rate:,.0f} times a second with {_NAMES[label]} ({label})"
        known = {"counter": label, "count": int(part.sum()), "core": int(cpus[row]), "cores": many}
        yield Symptom(
            DETECTOR, from_us, to_us, text if many == 1 else text.replace("was", "were", 1), "info", facts=known
        )


def _beyond_usual(per_s: npt.NDArray[np.float64]) -> Mask:
    """[core, reading] in which it takes enough, and twice what it took before that began."""
    hot: Mask = per_s >= CALLS_ON_A_CORE_PER_S
    for row in np.flatnonzero(hot.any(axis=1)).tolist():
        first = int(hot[row].argmax())
        if first >= INTERRUPT_STORM_LEAST_READINGS:
            hot[row] &= per_s[row] >= INTERRUPT_STORM_GROWN_FACTOR * float(np.median(per_s[row, :first]))
    return hot


DETECTOR = Detector(
    kind="interrupt_storm",
    title="cores interrupted each other",
    reported_when="other cores interrupted one core 10,000 times a second or more, and twice as often as before (TLB "
    "shootdowns, function calls)",
    find=find,
    source="interrupts",
    role="hog",
    has_hog=False,
)
