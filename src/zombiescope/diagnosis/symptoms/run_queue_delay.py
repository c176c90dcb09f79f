"""Tasks that were ready to run and waited for one core while another had room.

From /proc/schedstat: how long tasks waited in the run queue of a core. Room is another core that idles, and not what
all of them have left on average: of 96 cores that are 80% busy some idle. Where many cores wait, waiting is the rule
and says nothing; and an isolated core is room for nobody. Kernels without CONFIG_SCHEDSTATS do not count waiting; there
a full core that several tasks share, none of which runs elsewhere, shows the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from zombiescope.diagnosis.core_grid import CoreGrid
from zombiescope.diagnosis.crowd import crowd_on
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.spans import runs
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import (
    RUN_QUEUE_FULL_LEAST_S,
    RUN_QUEUE_FULL_RATIO,
    RUN_QUEUE_LEAST_S,
    RUN_QUEUE_MORE_THAN_OTHERS,
    RUN_QUEUE_ROOM_RATIO,
    RUN_QUEUE_WAITED_US,
)
from zombiescope.store.columns import Mask


def find(facts: Facts) -> Iterator[Symptom]:
    cores = facts.cores
    if cores is None:
        return
    room = _room(cores, facts.isolated)
    counted = not np.isnan(cores.counts["wait_us"]).all()
    yield from _waited(cores, room) if counted else _crowded(facts, cores, room)


def _room(cores: CoreGrid, isolated: frozenset[int]) -> Mask:
    """[core, second] in which another one idles."""
    idle = np.where(cores.measured, 1 - cores.busy, 0.0)
    idle[[row for row, cpu in enumerate(cores.cpus) if cpu in isolated]] = 0.0
    second, first = np.sort(np.pad(idle, ((1, 0), (0, 0))), axis=0)[-2:]
    room: Mask = np.where(idle >= first, second, first) >= RUN_QUEUE_ROOM_RATIO
    return room


def _waited(cores: CoreGrid, room: Mask) -> Iterator[Symptom]:
    waited = np.nan_to_num(cores.counts["wait_us"])
    middle = np.sort(waited, axis=0)[(len(waited) - 1) // 2]  # of two the one that waits less
    alone = (waited >= RUN_QUEUE_WAITED_US) & (waited >= RUN_QUEUE_MORE_THAN_OTHERS * middle)
    for row, cpu in enumerate(cores.cpus):
        for first, last in runs(alone[row] & room[row], least=RUN_QUEUE_LEAST_S, bridge=1):
            total_us = int(waited[row, first:last].sum())
            text = f"tasks waited {total_us / 1e6:.1f} s for core {cpu} in {last - first} s while other cores had room"
            yield _symptom(cores, cpu, first, last, text, {"wait_us": total_us})


def _crowded(facts: Facts, cores: CoreGrid, room: Mask) -> Iterator[Symptom]:
    full = cores.busy >= RUN_QUEUE_FULL_RATIO
    for row, cpu in enumerate(cores.cpus):
        for first, last in runs(full[row] & room[row], least=RUN_QUEUE_FULL_LEAST_S, bridge=1):
            crowd = crowd_on(facts.samples, cpu, cores.at_us(first), cores.at_us(last))
            if crowd is not None:
                text = f"{crowd.tasks} tasks shared core {cpu} for {last - first} s while other cores had room"
                yield _symptom(cores, cpu, first, last, text, {"tasks": crowd.tasks})


def _symptom(cores: CoreGrid, cpu: int, first: int, last: int, text: str, found: dict[str, int]) -> Symptom:
    return Symptom(DETECTOR, cores.at_us(first), cores.at_us(last), text, "info", cpu, facts=dict[str, Any](found))


DETECTOR = Detector(
    kind="run_queue_delay",
    title="tasks waited to run",
    reported_when="tasks waited a second in each second for one core while another idled; where the kernel does not "
    "count that (no /proc/schedstat), three tasks or more shared a full core and were never seen on another",
    find=find,
    source="cores",
    role="victim",
    begins="summed",
    core_rank=4,
    core_is_taken=True,
    victim="tasks on core {cpu}",
)
