"""Packets that a core dropped because its backlog was full; so many that the card starved are `nic_starved`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import NIC_DROPS_PER_S, SOFTNET_DROPS_PER_S


def find(facts: Facts) -> Iterator[Symptom]:
    if facts.cores is None:
        return
    dropped = np.nan_to_num(facts.cores.counts["softnet_dropped"])
    by_core = np.where(dropped < NIC_DROPS_PER_S, dropped, 0).sum(axis=1)
    if not by_core.any():
        return
    row = int(by_core.argmax())
    worst = facts.cores.cpus[row]
    total = int(by_core.sum())
    yield Symptom(
        DETECTOR,
        facts.start_us,
        facts.end_us,
        f"{total:,} packets were dropped because a core did not keep up, most of them on core {worst}",
        "warning" if by_core[row] >= SOFTNET_DROPS_PER_S * facts.seconds else "info",
        group="softnet",
        facts={"softnet_dropped": total, "core": worst},
    )


DETECTOR = Detector(
    kind="softnet_dropped",
    title="a core dropped packets",
    reported_when="a core dropped a packet a second because its backlog was full; fewer are a note",
    find=find,
    source="cores",
    role="victim",
    about="network",
    begins="window",
    has_hog=False,
    is_remark=True,
)
