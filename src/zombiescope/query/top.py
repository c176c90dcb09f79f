"""The hottest functions and stacks of a selection.

`self` counts samples in which the function was the innermost frame, `total` those in which it was on the stack at
all: once per sample, however often it calls itself. Leaves that only look hot (store/stacks.py) are charged to
their callers in `self`. Ratios are of all selected samples, 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zombiescope._native import function_totals
from zombiescope.query.stacks import Function, Stacks
from zombiescope.store.columns import Ints


@dataclass(frozen=True, slots=True)
class HotFunction:
    function: Function
    self_samples: int
    total_samples: int
    self_ratio: float
    total_ratio: float


@dataclass(frozen=True, slots=True)
class HotStack:
    """Frames outermost first."""

    frames: tuple[Function, ...]
    samples: int
    ratio: float


def functions(known: Stacks, counts: Ints, top: int | None = None) -> list[HotFunction]:
    """By self, then by total, then by name."""
    all_samples = int(counts.sum())
    sampled = np.flatnonzero(counts)
    width = len(known.functions)
    charged = known.without_skid()
    own = np.bincount(charged.flat[charged.ends[sampled] - 1], counts[sampled], width)
    total = np.frombuffer(
        function_totals(
            np.ascontiguousarray(known.flat, np.int32),
            np.ascontiguousarray(known.starts),
            np.ascontiguousarray(known.ends),
            np.ascontiguousarray(counts),
            width,
        ),
        np.int64,
    )
    order = sorted(
        np.flatnonzero(total).tolist(), key=lambda number: (-own[number], -total[number], known.functions[number].name)
    )
    return [
        HotFunction(
            known.functions[number],
            int(own[number]),
            int(total[number]),
            own[number] / all_samples,
            total[number] / all_samples,
        )
        for number in order[:top]
    ]


def stacks(known: Stacks, counts: Ints, top: int | None = None) -> list[HotStack]:
    """Most frequent first. A stack that has an id in several parts of the recording is one."""
    all_samples = int(counts.sum())
    sampled = np.flatnonzero(counts)
    order = sampled[np.argsort(-counts[sampled], kind="stable")][:top]
    return [HotStack(tuple(known.of(row)), int(counts[row]), int(counts[row]) / all_samples) for row in order.tolist()]
