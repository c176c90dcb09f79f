"""Holes in the samples of a core: no interrupt was taken there for far longer than the sampler's period.

The clock of the sampler is an interrupt. While interrupts are off it cannot fire, and /proc/stat loses the time too. A
hypervisor that took the core away makes the same gap, so time that was stolen rules a hole out, and so do idle time
that some machines do not sample, and whatever the recorder itself lost (blind_spots.py). A hole in all cores at once is
the whole machine standing still: in more than half, and a core that idled counts where its samples, too, have a gap
just as long. On a large node most cores may idle, and it stands still all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from zombiescope.diagnosis.blind_spots import blind_spots
from zombiescope.diagnosis.core_grid import CoreGrid
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.thresholds import TIME_HOLE_ALIKE_RATIO
from zombiescope.store.columns import Mask
from zombiescope.store.thresholds import HOLE_US, LITTLE_STOLEN


class Hole(NamedTuple):
    cpu: int
    from_us: int
    to_us: int
    gap_us: int
    expected_samples: int | None
    samples: int | None


class Pause(NamedTuple):
    """More than half of the cores at once."""

    from_us: int
    to_us: int
    gap_us: int
    cores: int


def holes(facts: Facts, cores: CoreGrid) -> Iterator[Hole]:
    """Of one core, or of some."""
    found = _found(facts, cores)
    for row, second in zip(*np.nonzero(found & ~_at_once(cores, found)), strict=True):
        expected, got = (_number(cores.counts[name][row, second]) for name in ("expected_samples", "samples"))
        at_us, end_us = cores.at_us(int(second)), cores.at_us(int(second) + 1)
        yield Hole(cores.cpus[int(row)], at_us, end_us, int(cores.max_gap_us[row, second]), expected, got)


def pauses(facts: Facts, cores: CoreGrid) -> Iterator[Pause]:
    """Of the whole machine."""
    found = _found(facts, cores)
    for second in np.flatnonzero(_at_once(cores, found)).tolist():
        gap_us = int(cores.max_gap_us[found[:, second], second].max())
        yield Pause(cores.at_us(second), cores.at_us(second + 1), gap_us, int(found[:, second].sum()))


def _found(facts: Facts, cores: CoreGrid) -> Mask:
    found: Mask = (cores.holes_us >= HOLE_US) & (np.nan_to_num(cores.ratios["steal"]) < LITTLE_STOLEN)
    return found & ~blind_spots(facts, cores) if found.any() else found


def _at_once(cores: CoreGrid, found: Mask) -> Mask:
    """Seconds in which most of the cores that are sampled, two or more, have a hole, and all are about as long."""
    gaps = np.nan_to_num(cores.max_gap_us)
    shortest, longest = np.where(found, gaps, np.inf).min(axis=0), np.where(found, gaps, 0).max(axis=0)
    alike = found | ((gaps >= TIME_HOLE_ALIKE_RATIO * longest) & (TIME_HOLE_ALIKE_RATIO * gaps <= longest))
    sampled = (~np.isnan(cores.max_gap_us)).any(axis=1).sum()
    together: Mask = (
        (found.sum(axis=0) >= 2) & (2 * alike.sum(axis=0) > sampled) & (shortest >= TIME_HOLE_ALIKE_RATIO * longest)
    )
    return together


def _number(value: float) -> int | None:
    return None if np.isnan(value) else int(value)
