"""Holes in the samples of a core: no interrupt was taken there for far longer than the sampler's period.

The clock of the sampler is an interrupt. While interrupts are off it cannot fire, and /proc/stat loses the time too. A
hypervisor that took the core away makes the same gap, so time that was stolen rules a hole out, and so do idle time
that some machines do not sample, and whatever the recorder itself lost. A hole in all cores at once is
the whole machine standing still: in more than half, and a core that idled counts where its samples, too, have a gap
just as long. On a large node most cores may idle, and it stands still all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from zombiescope.diagnosis.core_grid import CoreGrid, Grid
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.thresholds import BLIND_SPOT_LATE_RATIO, TIME_HOLE_ALIKE_RATIO
from zombiescope.store import columns
from zombiescope.store.columns import Mask
from zombiescope.store.gaps import Gap
from zombiescope.store.loss import SAMPLES, lost_records
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


# --- blind spots ------------------------------------------------------------------------------------------------------
# Where the recorder itself was blind or late: [core, second] of the grid in which a hole in the samples is its own.
#
# A hole is a time without samples. Samples that did not fit into a ring (`gaps` of the source "stack samples"), a
# reader that failed and a recorder that did not run make the same hole as code with interrupts off, so such a hole is
# nobody's symptom. The kernel reports a loss with the first record that fits again, one tick after the hole at most.
#
# Lateness is another matter. A recorder that is late reads what the kernel sampled meanwhile, later; so it explains a
# hole of its own length only where no samples are missing. A machine that stood still makes its recorder late, too.

BLINDING = frozenset({"recorder", SAMPLES, f"{SAMPLES} (counts)", "per-core time", "per-core time (reader)"})
"""Sources without which nobody knows whether a core took interrupts."""
_ONE_CORE = re.compile(rf"{SAMPLES} of cpu (\d+)$")


def blind_spots(facts: Facts, cores: CoreGrid) -> Mask:
    """Where holes are our own."""
    return facts.always(
        ("blind spots", cores.start_us, cores.seconds), lambda: _lost(facts, cores) | _late(facts, cores)
    )


def _lost(facts: Facts, cores: CoreGrid) -> Mask:
    blind = np.zeros((len(cores.cpus), cores.seconds), bool)
    for gap in facts.gaps:
        rows = _rows(gap, cores)
        first, last = max(0, cores.second(gap.from_us) - 1), cores.second(gap.to_us - 1) + 2
        if rows and last > 0:
            blind[rows, first:last] = True
    return blind


def _rows(gap: Gap, cores: CoreGrid) -> list[int]:
    """The cores about which nothing is known in a gap."""
    lost = lost_records(gap.source, gap.why)
    one = _ONE_CORE.match(gap.source)
    if lost is None and one is None:
        return list(range(len(cores.cpus))) if gap.source in BLINDING else []
    row = cores.row(lost[1] if lost is not None else int(one[1]))  # type: ignore[index]
    return [] if row is None else [row]


def _late(facts: Facts, cores: CoreGrid) -> Mask:
    late_us = np.zeros(cores.seconds)
    rows = facts.recording.table("cost", cores.start_us, facts.end_us + 1, ("time", "tick_late_us"))
    rows = columns.take(rows, np.flatnonzero(columns.present(rows.column("tick_late_us"))))
    times, late = columns.numbers(rows.column("time")), columns.numbers(rows.column("tick_late_us"))
    # A tick at the end of a second belongs to that second.
    second = np.clip((times - 1 - cores.start_us) // 1_000_000, 0, cores.seconds - 1)
    np.maximum.at(late_us, second, late.astype(float))
    gap = np.nan_to_num(cores.max_gap_us)
    explained: Mask = (
        (gap > 0) & (late_us[None, :] >= BLIND_SPOT_LATE_RATIO * gap) & (_missing_us(facts, cores) < gap / 2)
    )
    return explained


def _missing_us(facts: Facts, cores: CoreGrid) -> Grid:
    """The time for which samples did not come, in each second and the one after it, where late ones would be."""
    missing = np.nan_to_num(cores.counts["expected_samples"] - cores.counts["samples"])
    both = missing.copy()
    both[:, :-1] += missing[:, 1:]
    time_us: Grid = np.maximum(both, 0) / facts.hz * 1e6
    return time_us
