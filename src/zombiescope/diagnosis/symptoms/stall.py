"""A core that one task held in the kernel without a break, for 100 ms or more, while others waited for it.

Seen in the stacks: sample after sample of one task, all in the kernel. That alone is any busy program; it is a stall
when somebody waited meanwhile: ksoftirqd (its run delay) or the run queue of that core. Where waiting was not measured
(imported profiles), only half a second and more is told.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Symptom

STALL_US = 100_000
STALL_UNSEEN_US = 500_000
WAITED_US = 100_000
ENOUGH_US = 1_000_000
"""From here on it is a kernel hog or a saturated core, which other detectors tell."""


def find(facts: Facts) -> Iterator[Symptom]:
    grid = facts.samples
    if not len(grid):
        return
    order = np.lexsort((grid.time_us, grid.cpu))
    time, cpu, task = grid.time_us[order], grid.cpu[order], grid.task[order]
    period_us = 1e6 / grid.hz
    goes_on = (
        (cpu[1:] == cpu[:-1])
        & (task[1:] == task[:-1])
        & grid.in_kernel[order][1:]
        & grid.in_kernel[order][:-1]
        & (time[1:] - time[:-1] < 2.5 * period_us)
    )
    breaks = np.flatnonzero(~goes_on)
    firsts, lasts = np.concatenate([[0], breaks + 1]), np.concatenate([breaks, [len(time) - 1]])
    lengths = time[lasts] - time[firsts] + int(period_us)
    for first, last in zip(firsts[lengths >= STALL_US].tolist(), lasts[lengths >= STALL_US].tolist(), strict=True):
        length_us = int(time[last] - time[first] + period_us)
        who = grid.task_of(int(task[first]))
        if length_us >= ENOUGH_US or not who.tid:
            continue
        waited = _waited(facts, int(cpu[first]), int(time[first]), int(time[last]))
        if length_us < STALL_UNSEEN_US if waited is None else waited < WAITED_US:
            continue
        yield Symptom(
            "stall",
            int(time[first]),
            int(time[last]) + int(period_us),
            f"core {int(cpu[first])} was held in the kernel by {who.comm} for {length_us / 1000:.0f} ms"
            + ("" if waited is None else f" while others waited {waited / 1000:.0f} ms for it"),
            "info",
            int(cpu[first]) if cpu[first] >= 0 else None,
            f"tid {who.tid}",
            {"pid": who.pid, "tid": who.tid, "comm": who.comm, "waited_us": waited},
        )


def _waited(facts: Facts, cpu: int, from_us: int, to_us: int) -> int | None:
    """The longest that ksoftirqd or the run queue of a core waited in the seconds of a span."""
    cores = facts.cores
    row = cores.row(cpu) if cores is not None else None
    if cores is None or row is None:
        return None
    first, last = (max(0, min(cores.seconds - 1, (at - cores.start_us) // 1_000_000)) for at in (from_us, to_us))
    known = [
        float(np.nanmax(part))
        for name in ("ksoftirqd_delay_us", "wait_us")
        if not np.isnan(part := cores.counts[name][row, first : last + 1]).all()
    ]
    return int(max(known)) if known else None
