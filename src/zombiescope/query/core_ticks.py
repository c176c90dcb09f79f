"""How busy each core was, from its samples: for a profile that was imported without any counters beside it.

A second of a core is as long as the most samples that any core has in any second; what of it was sampled in user space
or in the kernel is user or system time. Whatever else a counter shows (irq, softirq, steal) is not known from here.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from zombiescope.base.time import SECOND_US
from zombiescope.query.selection import Selection
from zombiescope.store import columns
from zombiescope.store.columns import Ints

_MOST_CELLS = 20_000_000


def ticks(selection: Selection, unknown: tuple[str, ...]) -> pa.Table | None:
    """Rows like those of the table `cores`, one for each second and core; None where samples show nothing."""
    known = selection.stacks
    idle, kernel = known.idle(), known.in_kernel()
    first = selection.start_us // SECOND_US
    seconds = (selection.end_us - 1) // SECOND_US - first + 1
    counts = np.zeros((3, seconds, 0), np.int64)
    for time_us, cpu, stack in selection.columns("time", "cpu", "stack"):
        width = int(cpu.max(initial=-1)) + 1
        if seconds * width > _MOST_CELLS:
            return None
        if width > counts.shape[2]:
            counts = np.concatenate([counts, np.zeros((3, seconds, width - counts.shape[2]), np.int64)], axis=2)
        rows = known.rows_of(stack)
        kind = np.where(idle[rows], 2, np.where(kernel[rows], 1, 0))
        there = cpu >= 0
        cell = (kind * seconds + time_us // SECOND_US - first) * counts.shape[2] + cpu
        counts += np.bincount(cell[there], minlength=counts.size).reshape(counts.shape)
    whole = int(counts.sum(axis=0).max(initial=0))
    if not whole:
        return None
    second, cpu = np.nonzero(counts.sum(axis=0))
    user, system = (counts[kind, second, cpu] * 1000 // whole for kind in (0, 1))
    measured = {"time": (first + second + 1) * SECOND_US, "interval_us": np.full(len(cpu), SECOND_US), "cpu": cpu,
                "user_ms": user, "system_ms": system}  # fmt: skip
    return pa.table({name: _column(values) for name, values in measured.items()}
                    | {name: pa.nulls(len(cpu), pa.int64()) for name in unknown if name not in measured})  # fmt: skip


def _column(values: Ints) -> pa.Array:
    return columns.ints_array(values.astype(np.int64), None, pa.int64())
