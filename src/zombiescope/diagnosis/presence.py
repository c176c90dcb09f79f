"""Who was on a core in the seconds of a symptom: what is to be joined asks this, and not only whether times are near.

A hog that was here and there had something to do with a core that was lost only if it was seen on it meanwhile. Where a
core has no samples in those seconds nobody can be told apart, and then nearness in time is all there is.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis.sample_grid import SampleGrid
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.task_groups import member_tasks
from zombiescope.diagnosis.thresholds import HELD_CORE_LEAST_SHARE, MOSTLY_SHARE
from zombiescope.store.columns import Mask

RECLAIMS = (
    "shrink_node", "balance_pgdat", "try_to_free_pages", "try_to_free_mem_cgroup_pages", "out_of_memory",
    "mem_cgroup_out_of_memory", "console_unlock", "console_flush_all", "vprintk_emit",
)  # fmt: skip
"""Freeing memory, killing for want of it, and printing about that."""


class Presence:
    """Each symptom's tasks are looked up once: on a large node hundreds of cores are asked about one hog. Tasks and not
    samples are remembered, because there are a thousand times fewer of them."""

    def __init__(self, grid: SampleGrid) -> None:
        self._grid = grid
        self._members: dict[tuple[object, ...], Mask] = {}
        self._reclaims: dict[int, bool] = {}

    def was_on(self, hog: Symptom, placed: Symptom) -> bool:
        """Whether the tasks that one symptom names were on the core of the other in its seconds, or are those that the
        other names itself; True where that is not known."""
        if placed.detector.names_hog and placed.group is not None:
            return self._are_of(hog, placed)
        return placed.cpu is None or self.was_on_any(hog, (placed.cpu,), placed)

    def _are_of(self, hog: Symptom, other: Symptom) -> bool:
        part = self._around(other)
        theirs = self._of(other, part)
        of_both = int(np.count_nonzero(theirs & self._of(hog, part)))
        return 2 * of_both >= int(np.count_nonzero(theirs))

    def was_on_any(self, hog: Symptom, cpus: Collection[int], when: Symptom) -> bool:
        """On one of these cores; each is asked by itself, because one lost core is enough."""
        part = self._around(when)
        on, mine = self._grid.cpu[part], self._of(hog, part)
        cores, total = np.unique(on, return_counts=True)
        had = dict(zip(*(each.tolist() for each in np.unique(on[mine], return_counts=True)), strict=True))
        shares = {cpu: had.get(cpu, 0) / many for cpu, many in zip(cores.tolist(), total.tolist(), strict=True)}
        known = [shares[cpu] for cpu in cpus if cpu in shares]
        return not known or max(known) >= HELD_CORE_LEAST_SHARE

    def holder(self, placed: Symptom) -> str | None:
        """The program that had most of the core's samples in those seconds; None where none had, or none are known."""
        if placed.cpu is None:
            return None
        part = self._grid.between(placed.from_us, max(placed.to_us, placed.from_us + 1))
        there = part.cpu == placed.cpu
        best = part.hottest_group(there, lambda task: task.comm)
        return best[0].comm if best is not None and best[1] >= MOSTLY_SHARE * np.count_nonzero(there) else None

    def reclaims(self, symptom: Symptom) -> bool:
        """Whether who took the CPU there was about memory."""
        if id(symptom) not in self._reclaims:
            self._reclaims[id(symptom)] = self._about_memory(symptom)
        return self._reclaims[id(symptom)]

    def _about_memory(self, symptom: Symptom) -> bool:
        part = self._around(symptom)
        kernel = self._grid.in_kernel[part]
        if symptom.detector.names_hog and symptom.group:
            kernel = kernel & self._of(symptom, part)
        if symptom.cpu is not None:
            kernel = kernel & (self._grid.cpu[part] == symptom.cpu)
        reclaiming = int(np.count_nonzero(kernel & self._grid.with_function(*RECLAIMS)[part]))
        return reclaiming > 0 and reclaiming >= HELD_CORE_LEAST_SHARE * int(np.count_nonzero(kernel))

    def _of(self, symptom: Symptom, part: slice) -> Mask:
        key = (symptom.group, symptom.facts.get("kinds"))
        if key not in self._members:
            self._members[key] = member_tasks(self._grid, symptom)
        mine: Mask = self._members[key][self._grid.task[part]]
        return mine

    def _around(self, when: Symptom) -> slice:
        """Counters are read once a second, so a symptom's seconds may be one off."""
        return self._grid.part(when.from_us - SECOND_US, when.to_us + SECOND_US)
