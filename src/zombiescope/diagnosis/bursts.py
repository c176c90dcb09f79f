"""Counters that rise now and then: their bursts in a window, and whether this node had as much of it before.

For counters that are read every ten seconds and mostly stand still (errors of a port, throttling of a package). The
measure is the counter's own past: the ten minutes before the burst, reading by reading. What makers and monitoring
tools give as limits for such counters differs by orders of magnitude; what a port did not do before is news on any.

A burst begins with a reading that stands out of those before it, and ends when none has for a minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.moments import Moment
from zombiescope.diagnosis.thresholds import (
    BURST_CALM_READINGS,
    BURST_FEW_READINGS,
    BURST_PAST_US,
    BURST_PERCENTILE,
    BURST_RISE_WEIGHT,
    BURST_SHORT_SPAN_US,
    BURST_STANDS_OUT_FACTOR,
    EVENT_OFTEN,
    FREQUENCY_FELL_RATIO,
    FREQUENCY_SLOW_RATIO,
    SLOWING_WEIGHT,
)
from zombiescope.kernel.infiniband_counters import is_rare
from zombiescope.store import columns
from zombiescope.store.columns import Ints

READ_EVERY_US = 10 * SECOND_US
PAST = BURST_PAST_US // READ_EVERY_US

Floats = npt.NDArray[np.float64]
Rows = tuple[Ints, Ints]


@dataclass(frozen=True, slots=True)
class Burst:
    from_us: int
    """The reading before its first rise."""
    to_us: int
    added: int
    known: int
    """How many readings there were before it. With none nothing is usual."""

    @property
    def is_new(self) -> bool:
        return self.known > 0


def rises(facts: Facts) -> Iterator[Moment]:
    """Where counters that stand still while all is well rose, in a window that is too long to be looked at whole."""
    known = facts.dictionaries.series(facts.start_us, facts.end_us)
    rare = [number for number, (source, name, _, _) in known.items() if is_rare(source, name)]
    rows = _rare_rows(facts, rare) if rare else np.zeros((3, 0), np.int64)
    for number in np.unique(rows[1]).tolist():
        time, value = rows[0][rows[1] == number], rows[2][rows[1] == number]
        place = np.maximum((time - 1 - facts.start_us) // READ_EVERY_US, 0)
        runs = list(_runs(np.bincount(place, value).astype(np.float64)))
        for first, last in runs:
            at_us = facts.start_us + first * READ_EVERY_US
            weight = BURST_RISE_WEIGHT / max(1.0, len(runs) / EVENT_OFTEN)
            yield Moment(at_us, at_us + (last - first + 1) * READ_EVERY_US, weight)


def slowings(facts: Facts) -> Iterator[Moment]:
    """Where processors began to be cooled, or their limit or speed fell, in such a window."""
    known = facts.dictionaries.series(facts.start_us, facts.end_us)
    levels = {(name, key): number for number, (source, name, key, _) in known.items() if source == "cpufreq"}
    rows = _rare_rows(facts, list(levels.values())) if levels else np.zeros((3, 0), np.int64)
    for (name, key), number in levels.items():
        time, value = rows[0][rows[1] == number], rows[2][rows[1] == number]
        base = rows[2][rows[1] == levels.get(("base", key), -1)]
        if name == "cooled":
            bad = value > 0
        elif name == "limit":
            bad = value < FREQUENCY_FELL_RATIO * value.max(initial=0)
        else:
            bad = value < FREQUENCY_SLOW_RATIO * base.max(initial=0) if name == "speed" else np.zeros(len(value), bool)
        began = np.flatnonzero(bad & ~np.concatenate([[False], bad[:-1]]))
        for at_us in time[began].tolist():
            yield Moment(at_us - READ_EVERY_US, at_us + 6 * READ_EVERY_US, SLOWING_WEIGHT / max(1, len(began)))


def _rare_rows(facts: Facts, rare: list[int]) -> Ints:
    """Time, series and value, part by part: all counters of twelve hours are many."""
    parts = []
    names = ("time", "series", "value")
    for batch in facts.recording.batches("counters", facts.start_us, facts.end_us, names):
        chosen = np.isin(columns.numbers(batch.column("series")), rare)
        parts.append(np.stack([columns.numbers(batch.column(name))[chosen] for name in names]))
    return np.concatenate(parts, axis=1) if parts else np.zeros((3, 0), np.int64)


class Bursts:
    """Of one source in one window."""

    def __init__(self, facts: Facts, source: str) -> None:
        self._facts = facts
        past = facts.before(facts.start_us, BURST_PAST_US)
        self._start_us = facts.start_us if past is None else past.start_us
        self._before: dict[tuple[str, str], Rows] = {} if past is None else past.readings(source)
        self.moved = facts.readings(source)
        is_short = facts.end_us - self._start_us < BURST_SHORT_SPAN_US
        self._every_us = self._cadence() if is_short else READ_EVERY_US

    def _cadence(self) -> int:
        """How far apart readings are; sources that are read at every tick have rows every second."""
        times = np.unique(np.concatenate([np.zeros(0, np.int64), *(rows[0] for rows in self.moved.values())]))
        return max(1, int(np.median(np.diff(times)))) if len(times) > 2 else READ_EVERY_US

    def of(self, name: str, key: str) -> Iterator[Burst]:
        """Those that reach into the window."""
        rows = [part[name, key] for part in (self._before, self.moved) if (name, key) in part]
        time, value = (np.concatenate([one[which] for one in rows]) for which in (0, 1))
        place = np.maximum((time - 1 - self._start_us) // self._every_us, 0)
        bins = np.bincount(place, value).astype(np.float64)
        for first, last in _runs(bins):
            inside = (place >= first) & (place <= last)
            to_us = int(time[inside].max())
            if to_us > self._facts.start_us:
                from_us = max(self._start_us, int(time[inside].min()) - self._every_us)
                yield Burst(from_us, to_us, int(value[inside].sum()), first)


def _runs(bins: Floats) -> Iterator[tuple[int, int]]:
    """The first and the last reading of each burst. One that is there from the beginning, or nearly, is measured by
    nothing: soon it is itself what is usual."""
    first = last = -1
    usual: float | None = None
    for place in np.flatnonzero(bins).tolist():
        if first >= 0 and (
            place - last > BURST_CALM_READINGS or (first < BURST_FEW_READINGS and place - first >= BURST_FEW_READINGS)
        ):
            yield first, last
            first = -1
        if first < 0:
            usual = _usual(bins[max(0, place - PAST) : place])
        if usual is None or bins[place] > BURST_STANDS_OUT_FACTOR * usual:
            first, last = place if first < 0 else first, place
    if first >= 0:
        yield first, last


def _usual(before: Floats) -> float | None:
    """What its busier readings added; of a few the largest. Errors come in waves, and a wave that has come before is
    usual here."""
    if not len(before):
        return None
    return float(
        before.max() if len(before) < BURST_FEW_READINGS else np.percentile(before, BURST_PERCENTILE, method="higher")
    )
