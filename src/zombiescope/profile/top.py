"""The hottest functions and stacks of a selection.

`self` counts samples in which the function was the innermost frame, `total` those in which it was on the stack at
all: once per sample, however often it calls itself. Leaves that only look hot (recording/stacks.py) are charged to
their callers in `self`. Ratios are of all selected samples, 0 to 1.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from zombiescope.profile.stacks import Function, Stacks
from zombiescope.recording.columns import Ints


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
    total = _total(known, sampled, counts)
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


def _total(known: Stacks, sampled: Ints, counts: Ints) -> Ints:
    """Samples with the function anywhere on the stack: each pair of stack and function counts once."""
    lengths = known.ends[sampled] - known.starts[sampled]
    stack = np.repeat(np.arange(len(sampled)), lengths)
    within = np.arange(len(stack)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    function = known.flat[np.repeat(known.starts[sampled], lengths) + within]
    width = len(known.functions)
    pairs = np.unique(stack * width + function)
    return np.bincount(pairs % width, counts[sampled[pairs // width]], width).astype(np.int64)


def stacks(known: Stacks, counts: Ints, top: int | None = None) -> list[HotStack]:
    """Most frequent first. A stack that has an id in several parts of the recording is one here."""
    all_samples = int(counts.sum())
    found: Counter[bytes] = Counter()
    row_of: dict[bytes, int] = {}
    for row in np.flatnonzero(counts).tolist():
        key = known.flat[known.starts[row] : known.ends[row]].tobytes()
        found[key] += int(counts[row])
        row_of.setdefault(key, row)
    return [
        HotStack(tuple(known.of(row_of[key])), samples, samples / all_samples)
        for key, samples in found.most_common(top)
    ]
