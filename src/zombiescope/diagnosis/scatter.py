"""Whether a group of tasks is one crowd, or many that only have a name or a unit in common.

On a node with a hundred cores a dozen shells, a probe in every pod or a worker on every core have a CPU's worth of the
kernel together, and nobody could point at one of them, or at a core that it was taken from. Together they are a hog
where one stands behind them (a process with its threads, or whoever started most of them), or where they take a
noticeable part of one core. Neither depends on the size of the node: on two cores nothing is scattered.
"""

from __future__ import annotations

import numpy as np

from zombiescope.diagnosis.sample_grid import SampleGrid
from zombiescope.diagnosis.thresholds import SCATTERED_CORE_SHARE
from zombiescope.store.columns import Ints, Mask
from zombiescope.store.thresholds import MODERATE_RATIO


def is_scattered(grid: SampleGrid, chosen: Mask | Ints, seconds: float) -> bool:
    """The chosen samples are of many tasks of many, each with little, and little on any core."""
    on = grid.cpu[chosen]
    if (on < 0).any() or not len(on):  # profiles of others do not say where
        return False
    if np.bincount(on).max() >= SCATTERED_CORE_SHARE * grid.hz * seconds:
        return False
    starter = grid.starter(chosen, or_itself=True)
    return starter is not None and not starter.started_most and starter.samples < MODERATE_RATIO * grid.hz * seconds
