"""Which cores serve no network card, for work that would hold one: where a packet waits, a training job does."""

from __future__ import annotations

import os

from zombiescope.kernel.nic_queue import nic_queues


def nic_cores(root: str = "/") -> frozenset[int]:
    """Cores to which the interrupt of some queue goes."""
    return frozenset(cpu for queue in nic_queues(root) for cpu in queue.cpus)


def quiet_cores(busy: frozenset[int] | None = None) -> frozenset[int]:
    """Of those that we may run on; none where every core serves a card, or this process may use no other."""
    return frozenset(os.sched_getaffinity(0)) - (nic_cores() if busy is None else busy)
