"""Time that the hypervisor took: the core was wanted and not to be had. Nothing on the node is to blame."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Symptom
from zombiescope.diagnosis.spans import runs

STOLEN_RATIO = 0.3
LEAST_S = 2


def find(facts: Facts) -> Iterator[Symptom]:
    cores = facts.cores
    if cores is None:
        return
    stolen = np.nan_to_num(cores.ratios["steal"])
    for row, cpu in enumerate(cores.cpus):
        for first, last in runs(stolen[row] >= STOLEN_RATIO, least=LEAST_S, bridge=1):
            ratio = float(stolen[row, first:last].mean())
            yield Symptom(
                "steal",
                cores.at_us(first),
                cores.at_us(last),
                f"{ratio * 100:.0f} % of core {cpu} was stolen by the hypervisor for {last - first} s",
                "warning",
                cpu,
                facts={"ratio": ratio},
            )
