"""Runs of true values as spans of time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt


def runs(hot: npt.NDArray[np.bool_], least: int = 1, bridge: int = 0) -> Iterator[tuple[int, int]]:
    """[first, last) of each run of at least `least` true values; holes of at most `bridge` do not end a run."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], hot.astype(np.int8), [0]])))
    spans: list[tuple[int, int]] = []
    for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if spans and first - spans[-1][1] <= bridge:
            spans[-1] = (spans[-1][0], last)
        else:
            spans.append((first, last))
    yield from (span for span in spans if span[1] - span[0] >= least)
