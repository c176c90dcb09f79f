"""Where to look in a long window: the moments in which something may have happened, the worst first, and not too many.

Samples of twelve hours on a large node are a hundred million, so they are read around suspicious moments only. What is
suspicious is known from what is small: the table `cores` of all of the window, reduced to one row a second, its events,
and the incidents that the live doctor found, who also sees what neither of them shows (a CPU quota, cores that
interrupt each other). A node on which some core is always busy has suspicious moments everywhere, hence the limits; a
few looks are kept for quiet times, because a hog that is always there shows no step. What was not looked at is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zombiescope.base.baseline import DEVIATIONS_OF_MEDIAN
from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis.spans import runs
from zombiescope.diagnosis.thresholds import (
    EVENT_OFTEN,
    EVENT_WEIGHTS,
    KERNEL_STEP_BEFORE_S,
    KERNEL_STEP_CORES,
    KERNEL_STEP_DEVIATIONS,
    KERNEL_STEP_S,
    KNOWN_INCIDENT_WEIGHTS,
    MOMENT_AROUND_US,
    MOMENT_BRIDGE_S,
    MOMENT_HEAD_US,
    MOMENT_TAIL_US,
)
from zombiescope.store import columns
from zombiescope.store.core_lists import LEFT_OUT, listed
from zombiescope.store.event import Event
from zombiescope.store.reader import Recording
from zombiescope.store.thresholds import HOLE_US, KERNEL_MODES, SATURATED_RATIO, STOLEN_RATIO

MOST_MOMENTS = 16
QUIET_LOOKS = 4

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Moment:
    """`goes_on_us`: where a run ends of which this is only the beginning."""

    from_us: int
    to_us: int
    weight: float
    goes_on_us: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    moments: tuple[Moment, ...]
    """In the order of time; none touches another."""
    suspicious: int
    left_out: int
    """Suspicious moments that were not chosen."""


@dataclass(frozen=True, slots=True)
class Seconds:
    """One number a second, over all cores."""

    start_us: int
    hottest: Floats
    """The largest part of a second that the kernel had of any core."""
    kernel: Floats
    """Cores' worth of kernel time."""
    gap_us: Floats
    stolen: Floats


def scan(recording: Recording, start_us: int, end_us: int) -> Seconds | None:
    """None when no tick was recorded in the window."""
    size = max(1, -(-(end_us - start_us) // SECOND_US))
    hottest, kernel, gap_us, stolen = (np.zeros(size) for _ in range(4))
    modes = tuple(f"{mode}_ms" for mode in KERNEL_MODES)
    found, apart = False, sorted(listed(recording.node, LEFT_OUT))
    for batch in recording.batches(
        "cores", start_us + 1, end_us + 1, ("time", "interval_us", "cpu", *modes, "steal_ms", "max_gap_us")
    ):
        if apart:
            batch = batch.filter(~np.isin(columns.numbers(batch.column("cpu")), apart))
        interval = np.maximum(columns.numbers(batch.column("interval_us")), 1)
        middle = columns.numbers(batch.column("time")) - interval // 2
        second = np.clip((middle - start_us) // SECOND_US, 0, size - 1)
        spent_ms = sum(columns.numbers(batch.column(mode)) for mode in modes)
        np.maximum.at(hottest, second, np.minimum(spent_ms * 1000 / interval, 1.0))
        np.add.at(kernel, second, spent_ms / 1000)
        np.maximum.at(gap_us, second, columns.numbers(batch.column("max_gap_us")).astype(float))
        np.maximum.at(stolen, second, columns.numbers(batch.column("steal_ms")) * 1000 / interval)
        found = True
    return Seconds(start_us, hottest, kernel, gap_us, stolen) if found else None


def choose(
    seconds: Seconds | None, events: Iterable[Event], start_us: int, end_us: int, known: Iterable[Moment] = ()
) -> Choice:
    seen = _of_seconds(seconds) if seconds is not None else ()
    suspicious = sorted([*_of_events(events), *seen, *known], key=lambda one: -one.weight)
    taken, left_out = _within_reach(suspicious)
    every_us = (end_us - start_us) // QUIET_LOOKS
    quiet = [Moment(at, at + 1, 0.0) for at in range(start_us + every_us // 2, end_us, every_us)]
    return Choice(tuple(_merged([*taken, *quiet], start_us, end_us)), len(suspicious), left_out)


def found_before(incidents: Iterable[dict[str, Any]], start_us: int, end_us: int) -> Iterator[Moment]:
    """Incidents of the live doctor in the window."""
    for one in incidents:
        from_us, to_us = round(float(one.get("from") or 0) * 1e6), round(float(one.get("to") or 0) * 1e6)
        if to_us > start_us and from_us < end_us:
            from_us, to_us = max(from_us, start_us), min(to_us, end_us)
            yield Moment(
                from_us,
                max(to_us, from_us + 1),
                KNOWN_INCIDENT_WEIGHTS.get(str(one.get("severity")), KNOWN_INCIDENT_WEIGHTS["info"]),
            )


def _of_events(events: Iterable[Event]) -> Iterator[Moment]:
    serious = [event for event in events if event.severity != "info"]
    often = Counter(event.kind for event in serious)
    for event in serious:
        weight = EVENT_WEIGHTS.get(event.severity, EVENT_WEIGHTS["critical"]) / max(
            1.0, often[event.kind] / EVENT_OFTEN
        )
        yield Moment(event.at_us, event.at_us + 1, weight)


def _of_seconds(seconds: Seconds) -> Iterator[Moment]:
    above = seconds.kernel - np.median(seconds.kernel)
    rises = _rises(seconds.kernel)
    step = _stands_out(above) | _stands_out(rises)
    weight = (
        40.0 * (seconds.hottest >= SATURATED_RATIO)
        + 20.0 * (seconds.gap_us >= HOLE_US)
        + 10.0 * (seconds.stolen >= STOLEN_RATIO)
        + np.where(step, np.clip(np.maximum(above, rises), KERNEL_STEP_CORES, 20.0), 0.0)
    )
    for first, last in runs(weight > 0, bridge=MOMENT_BRIDGE_S):
        # A core that is lost for long is worse than one that was for a second; an hour is not worse than a minute.
        lasts = min(float(np.count_nonzero(weight[first:last] > 0)), 30.0)
        from_us, to_us = (seconds.start_us + at * SECOND_US for at in (first, last))
        yield Moment(from_us, to_us, float(weight[first:last].max()) + lasts)


def _stands_out(above: Floats) -> npt.NDArray[np.bool_]:
    deviation = max(DEVIATIONS_OF_MEDIAN * float(np.median(np.abs(above))), 1e-6)
    stands_out: npt.NDArray[np.bool_] = (above >= KERNEL_STEP_CORES) & (above >= KERNEL_STEP_DEVIATIONS * deviation)
    return stands_out


def _rises(kernel: Floats) -> Floats:
    """At each second: the mean of the ten from there on, less that of the minute before. None at the ends."""
    rises = np.zeros(len(kernel))
    if len(kernel) >= KERNEL_STEP_S + KERNEL_STEP_BEFORE_S:
        summed = np.concatenate([[0.0], np.cumsum(kernel)])
        at = np.arange(KERNEL_STEP_BEFORE_S, len(kernel) - KERNEL_STEP_S + 1)
        after = (summed[at + KERNEL_STEP_S] - summed[at]) / KERNEL_STEP_S
        rises[at] = after - (summed[at] - summed[at - KERNEL_STEP_BEFORE_S]) / KERNEL_STEP_BEFORE_S
    return rises


def _within_reach(suspicious: list[Moment]) -> tuple[list[Moment], int]:
    """The worst of them, long ones cut to where they begin and end. Those beside a chosen one cost nothing more."""
    taken: list[Moment] = []
    left_out = 0
    for moment in suspicious:
        if any(
            one.from_us - MOMENT_AROUND_US <= moment.from_us and moment.to_us <= one.to_us + MOMENT_AROUND_US
            for one in taken
        ):
            continue
        pieces = list(_cut(moment))
        if len(taken) + len(pieces) > MOST_MOMENTS:
            left_out += 1
            continue
        taken += pieces
    return taken, left_out


def _cut(moment: Moment) -> Iterator[Moment]:
    if moment.to_us - moment.from_us <= MOMENT_HEAD_US + MOMENT_TAIL_US:
        yield moment
        return
    yield Moment(moment.from_us, moment.from_us + MOMENT_HEAD_US, moment.weight, moment.to_us)
    yield Moment(moment.to_us - MOMENT_TAIL_US, moment.to_us, moment.weight)


def _merged(moments: list[Moment], start_us: int, end_us: int) -> list[Moment]:
    merged: list[Moment] = []
    for one in sorted(moments, key=lambda one: one.from_us):
        from_us = max(start_us, one.from_us - MOMENT_AROUND_US)
        to_us = one.to_us if one.goes_on_us is not None else min(end_us, one.to_us + MOMENT_AROUND_US)
        if merged and from_us <= merged[-1].to_us:
            before = merged[-1]
            merged[-1] = Moment(before.from_us, max(before.to_us, to_us), 0.0, one.goes_on_us or before.goes_on_us)
        else:
            merged.append(Moment(from_us, to_us, 0.0, one.goes_on_us))
    return merged
