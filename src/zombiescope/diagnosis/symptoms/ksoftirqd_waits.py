"""The softirq thread of a core waited for that core, for less than starves a card.

Packets wait with it only up to kernel 6.4: since 6.5 softirqs run at every interrupt's end even when ksoftirqd waits
(d15121be7485).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import KSOFTIRQD_TELLS_BEFORE, NIC_DELAY_US, STALL_WAITED_US


def find(facts: Facts) -> Iterator[Symptom]:
    cores = facts.cores
    if cores is None:
        return
    delay = np.nan_to_num(cores.counts["ksoftirqd_delay_us"])
    anyway = facts.kernel is not None and facts.kernel >= KSOFTIRQD_TELLS_BEFORE
    waited = (
        delay if anyway else np.where(delay < NIC_DELAY_US, delay, 0)
    )  # from there on it is reported as nic_starved
    for row, cpu in enumerate(cores.cpus):
        second = int(waited[row].argmax())
        waited_us = int(waited[row, second])
        if waited_us < STALL_WAITED_US:
            continue
        so = (
            "since kernel 6.5 softirqs run without it too, so this alone starves no card"
            if anyway
            else "packets of that core may have waited as long"
        )
        yield Symptom(
            DETECTOR,
            cores.at_us(second),
            cores.at_us(second + 1),
            f"ksoftirqd/{cpu} waited {waited_us / 1000:.0f} ms for its core; {so}",
            "info" if anyway else "warning",
            cpu,
            facts={"waited_us": waited_us},
        )


DETECTOR = Detector(
    kind="ksoftirqd_waits",
    title="ksoftirqd waited for its core",
    reported_when="ksoftirqd waited 100 ms for its core within a second; a note since kernel 6.5",
    find=find,
    source="cores",
    role="victim",
    has_hog=False,
    is_remark=True,
)
