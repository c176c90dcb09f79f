"""Cores that were slowed down for heat, as the kernel counts it for each package; a blip is no symptom."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.bursts import Burst, Bursts
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import HEAT_LEAST_EVENTS, HEAT_LEAST_S, HEAT_THROTTLED_MS, HEAT_THROTTLED_RATIO

TIMES = ("package_throttle_total_time_ms", "core_throttle_total_time_ms")
EVENTS = ("package_throttle_count", "core_throttle_count")


def find(facts: Facts) -> Iterator[Symptom]:
    bursts = Bursts(facts, "thermal")
    for package in sorted({key for _, key in bursts.moved}):
        yield from _of_package(bursts, package)


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


DETECTOR = Detector(
    kind="cpu_throttled",
    title="cores were slowed down for heat",
    reported_when="heat slowed a package or its cores down for two seconds and a tenth of the time; where the kernel "
    "counts only how often, ten times in half a minute or longer",
    find=find,
    source="counters",
    role="victim",
    about="machine",
    has_hog=False,
)
