"""Cores that were slowed down: for heat, as the kernel counts it for each package (Intel), or as its cooling devices
and frequencies show (AMD, Arm); a blip is no symptom.

A limit of the frequency that fell is one: the kernel or the firmware lowered it. So is a package that is busy and
slower than its base: a limit of power or heat that nothing counts, or a governor that keeps it slow.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zombiescope.diagnosis.bursts import Burst, Bursts
from zombiescope.diagnosis.core_grid import CoreGrid
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.spans import runs
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import (
    BURST_PAST_US,
    FREQUENCY_BUSY_RATIO,
    FREQUENCY_FELL_RATIO,
    FREQUENCY_LEAST_US,
    FREQUENCY_SLOW_RATIO,
    HEAT_LEAST_EVENTS,
    HEAT_LEAST_S,
    HEAT_THROTTLED_MS,
    HEAT_THROTTLED_RATIO,
)
from zombiescope.store.columns import Ints, Mask

TIMES = ("package_throttle_total_time_ms", "core_throttle_total_time_ms")
EVENTS = ("package_throttle_count", "core_throttle_count")


def find(facts: Facts) -> Iterator[Symptom]:
    bursts = Bursts(facts, "thermal")
    for package in sorted({key for _, key in bursts.moved}):
        yield from _of_package(bursts, package)
    levels = _Levels(facts)
    yield from _cooled(levels)
    for package in sorted({key for name, key in levels.known if name in ("limit", "speed")}):
        yield from _limited(levels, package)
        yield from _slow(facts, levels, package)


def _of_package(bursts: Bursts, package: str) -> Iterator[Symptom]:
    times = [name for name in TIMES if (name, package) in bursts.moved]
    for name in times or [name for name in EVENTS if (name, package) in bursts.moved]:
        lasting = [burst for burst in bursts.of(name, package) if _lasts(burst, name in TIMES)]
        if lasting:
            yield from (_symptom(package, name, burst) for burst in lasting)
            return


def _lasts(burst: Burst, is_time: bool) -> bool:
    seconds = (burst.to_us - burst.from_us) / 1e6
    if is_time:
        return burst.added >= max(HEAT_THROTTLED_MS, HEAT_THROTTLED_RATIO * seconds * 1000)
    return burst.added >= HEAT_LEAST_EVENTS and seconds >= HEAT_LEAST_S


def _symptom(package: str, counter: str, burst: Burst) -> Symptom:
    seconds = (burst.to_us - burst.from_us) / 1e6
    is_time = counter in TIMES
    how_much = f"for {burst.added / 1000:,.1f} s of core time" if is_time else f"{burst.added:,} times"
    text = f"cores of {package} were slowed down for heat {how_much} in {seconds:.0f} s"
    facts = {"package": package, "counter": counter, "added": burst.added, "unit": "ms" if is_time else "times"}
    return Symptom(DETECTOR, burst.from_us, burst.to_us, text, group=package, facts=facts, subject="machine")


class _Levels:
    """Gauges of frequencies and cooling, from ten minutes before the window on. One has a row when it changes, so each
    value holds until the next."""

    def __init__(self, facts: Facts) -> None:
        past = facts.before(facts.start_us, BURST_PAST_US)
        self.start_us, self.end_us = facts.start_us, facts.end_us
        self._parts = [one.readings("cpufreq") for one in (past, facts) if one is not None]
        self.known = {key for part in self._parts for key in part}

    def of(self, name: str, key: str) -> tuple[Ints, Ints]:
        """When it was read, and what it was."""
        found = [part[name, key] for part in self._parts if (name, key) in part]
        if not found:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return np.concatenate([one[0] for one in found]), np.concatenate([one[1] for one in found])

    def spans(self, time: Ints, held: Mask) -> Iterator[tuple[int, int, slice]]:
        """From, to and the rows of each time in the window in which it held, if it held for long enough."""
        for first, last in runs(held):
            from_us = max(int(time[first]), self.start_us)
            to_us = min(int(time[last]) if last < len(time) else self.end_us, self.end_us)
            if to_us - from_us >= FREQUENCY_LEAST_US:
                yield from_us, to_us, slice(first, last)


def _cooled(levels: _Levels) -> Iterator[Symptom]:
    time, value = levels.of("cooled", "node")
    for from_us, to_us, rows in levels.spans(time, value > 0):
        most = int(value[rows].max())
        text = f"heat slows cores down for {(to_us - from_us) / 1e6:.0f} s: the cooling of {most} processors is on"
        yield _told("node", "cooled", most, "processors", from_us, to_us, text)


def _limited(levels: _Levels, package: str) -> Iterator[Symptom]:
    time, value = levels.of("limit", package)
    inside = time >= levels.start_us
    if not inside.any():
        return
    highest, lowest = int(value.max()), int(value[inside].min())
    at = int(time[inside][int(value[inside].argmin())])
    if lowest < FREQUENCY_FELL_RATIO * highest and (value[time < at] > lowest).any():
        text = (
            f"the frequency limit of {package} fell from {_ghz(highest)} to {_ghz(lowest)}: the kernel or the firmware"
        )
        yield _told(package, "limit", lowest // 1000, "MHz", at, int(time[-1]), f"{text} lowered it")


def _slow(facts: Facts, levels: _Levels, package: str) -> Iterator[Symptom]:
    time, speed = levels.of("speed", package)
    _, base = levels.of("base", package)
    usual = int(base[-1]) if len(base) else 0
    if not usual or facts.cores is None:
        return
    slow = speed < FREQUENCY_SLOW_RATIO * usual
    for from_us, to_us, rows in levels.spans(time, slow):
        busy = _busy(facts, facts.cores, package, from_us, to_us)
        if busy is not None and busy >= FREQUENCY_BUSY_RATIO:
            fastest = int(speed[rows].max())
            text = f"the fastest core of {package} ran at {_ghz(fastest)} for {(to_us - from_us) / 1e6:.0f} s while"
            text += (
                f" its cores were {busy * 100:.0f}% busy; its base frequency is {_ghz(usual)}: power or heat limits it,"
            )
            yield _told(package, "speed", fastest // 1000, "MHz", from_us, to_us, f"{text} or its governor")


def _busy(facts: Facts, cores: CoreGrid, package: str, from_us: int, to_us: int) -> float | None:
    """How busy the cores of a package were; of all cores where their places are not known."""
    known = facts.node.get("cpus")
    places = known.get("topology") if isinstance(known, dict) else None
    mine = {one.get("cpu") for one in places or () if f"package {one.get('package')}" == package}
    rows = [row for row, cpu in enumerate(cores.cpus) if not mine or cpu in mine]
    first, last = max(0, cores.second(from_us)), max(0, cores.second(to_us)) + 1
    part = cores.busy[rows, first:last]
    return float(np.nanmean(part)) if part.size and not np.isnan(part).all() else None


def _ghz(khz: int) -> str:
    return f"{khz / 1e6:.2f} GHz"


def _told(package: str, counter: str, value: int, unit: str, from_us: int, to_us: int, text: str) -> Symptom:
    facts = {"package": package, "counter": counter, "added": value, "unit": unit}
    return Symptom(DETECTOR, from_us, to_us, text, group=package, facts=facts, subject="machine")


DETECTOR = Detector(
    kind="cpu_throttled",
    title="cores were slowed down for heat",
    reported_when="heat slowed a package or its cores down for two seconds and a tenth of the time; where the kernel "
    "counts only how often, ten times in half a minute or longer; a processor's cooling is on for 20 s, its limit fell "
    "by a tenth, or it is busy and slower than 0.7 of its base frequency for 20 s",
    find=find,
    source="counters",
    role="victim",
    about="machine",
    has_hog=False,
)
