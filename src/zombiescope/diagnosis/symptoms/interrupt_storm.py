"""Cores that interrupt each other thousands of times a second: TLB shootdowns and other function calls.

Each takes 1 to 5 us from a core that was doing something else, and the sender waits for the slowest. No task need be in
the kernel for long: measured, 21,000 a second on two cores with 0.6 of a CPU in the sender. TLB counts are a part of
CAL on some kernels and beside it on others, so the larger of the two is reported and not their sum.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.spans import runs
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.recording.thresholds import CALLS_PER_CORE_PER_S

LEAST_US = 2_000_000
_NAMES = {"TLB": "TLB shootdowns", "CAL": "function calls"}


def find(facts: Facts) -> Iterator[Symptom]:
    found: list[Symptom] = []
    for label in _NAMES:
        for symptom in _storms(facts, label):
            if not any(one.from_us < symptom.to_us and symptom.from_us < one.to_us for one in found):
                found.append(symptom)
    yield from found


def _storms(facts: Facts, label: str) -> Iterator[Symptom]:
    times, counts = facts.interrupt_readings(label)
    if len(times) < 2:
        return
    span_us = np.diff(times)
    per_s = counts[1:] / np.maximum(span_us, 1) * 1e6
    for first, last in runs(per_s >= CALLS_PER_CORE_PER_S * max(facts.cpus, 1), bridge=1):
        from_us, to_us = int(times[first]), int(times[last])
        if to_us - from_us < LEAST_US:
            continue
        count = int(counts[first + 1 : last + 1].sum())
        rate = count / (to_us - from_us) * 1e6
        text = f"cores interrupted each other {rate:,.0f} times a second with {_NAMES[label]} ({label})"
        yield Symptom(DETECTOR, from_us, to_us, text, "info", facts={"counter": label, "count": count})


DETECTOR = Detector(
    kind="interrupt_storm",
    title="cores interrupted each other",
    reported_when="cores interrupted each other 5,000 times a second or more, counted per core (TLB shootdowns, "
    "function calls)",
    find=find,
    source="interrupts",
    role="hog",
    has_hog=False,
)
