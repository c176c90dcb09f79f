"""Tasks that were ready to run and waited for one core while others had room.

From /proc/schedstat: how long tasks waited in the run queue of a core. On a node whose cores are all busy waiting is
the rule and tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Symptom
from zombiescope.diagnosis.spans import runs

WAITED_US = 1_000_000
NODE_BUSY_RATIO = 0.7
LEAST_S = 2


def find(facts: Facts) -> Iterator[Symptom]:
    cores = facts.cores
    if cores is None or np.isnan(cores.counts["wait_us"]).all():
        return
    waited = np.nan_to_num(cores.counts["wait_us"])
    room = cores.node_busy() < NODE_BUSY_RATIO
    for row, cpu in enumerate(cores.cpus):
        for first, last in runs((waited[row] >= WAITED_US) & room, least=LEAST_S, bridge=1):
            total_us = int(waited[row, first:last].sum())
            yield Symptom(
                "run_queue_delay",
                cores.at_us(first),
                cores.at_us(last),
                f"tasks waited {total_us / 1e6:.1f} s for core {cpu} in {last - first} s while other cores had room",
                "info",
                cpu,
                facts={"wait_us": total_us},
            )
