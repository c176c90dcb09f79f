"""Memory goes out to swap and comes back, all the time: what is needed does not fit.

Going out alone is no trouble: memory that nobody needs is where it belongs then. Both at once for seconds, with tasks
that wait for it, is a node or a cgroup that works for its swap.
"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import SWAP_PART_US, SWAP_STEP_US, SWAP_WAITED_RATIO, SWAPPED_PAGES_PER_S


def find(facts: Facts) -> Iterator[Symptom]:
    parts = []
    for from_us in range(facts.start_us, max(facts.start_us + 1, facts.end_us - SWAP_PART_US + 1), SWAP_STEP_US):
        rate = swapped(facts, from_us, from_us + SWAP_PART_US)
        if rate is not None and rate >= SWAPPED_PAGES_PER_S and _waited(facts, from_us, from_us + SWAP_PART_US):
            parts.append((from_us, rate))
    if parts:
        from_us, to_us = parts[0][0], min(parts[-1][0] + SWAP_PART_US, facts.end_us)
        most = max(rate for _, rate in parts)
        yield Symptom(
            DETECTOR,
            from_us,
            to_us,
            f"{most:,.0f} pages a second went out to swap and as many came back",
            "warning",
            group="swap",
            facts={"pages_per_s": round(most)},
            subject="memory",
        )


def swapped(facts: Facts, from_us: int, to_us: int) -> float | None:
    """Pages a second that went both ways."""
    back, out = (facts.count("vmstat", name, from_us, to_us) for name in ("pswpin", "pswpout"))
    return None if back is None or out is None else min(back.rate, out.rate)


def _waited(facts: Facts, from_us: int, to_us: int) -> bool:
    """The kernel adds up the cores, each by how busy it is: one that only waits is a twentieth where twenty work."""
    waited = facts.count("pressure", "some_us", from_us, to_us, "memory")
    return waited is None or waited.rate * _busy_cores(facts, from_us, to_us) >= SWAP_WAITED_RATIO * 1e6


def _busy_cores(facts: Facts, from_us: int, to_us: int) -> float:
    """One where nobody knows."""
    cores = facts.cores
    if cores is None:
        return 1.0
    mean = cores.mean(cores.busy, max(0, cores.second(from_us)), max(1, cores.second(to_us)))
    return max(1.0, (mean or 0.0) * len(cores.cpus))


DETECTOR = Detector(
    kind="swapping",
    title="memory is swapped in and out",
    reported_when="1,000 pages a second went out to swap and as many came back for 10 s, and tasks waited for "
    "memory a tenth of a core's time",
    find=find,
    source="counters",
    role="victim",
    about="memory",
    begins="summed",
    weight=2,
    bounds_case=True,
    has_hog=False,
    critical_after_s=60.0,
)
