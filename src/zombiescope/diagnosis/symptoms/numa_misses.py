"""Memory that was taken from another NUMA node because the one that should have given it is full."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.bursts import Bursts
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import NUMA_EMPTY_RATIO, NUMA_FULL_RATIO, NUMA_MISS_LEAST_PAGES, NUMA_MISS_RATIO


def find(facts: Facts) -> Iterator[Symptom]:
    free, total = (facts.gauges("numa_memory", name, facts.end_us) for name in ("free_bytes", "total_bytes"))
    shares = {node: free[node] / total[node] for node in free.keys() & total.keys() if total[node] > 0}
    if len(shares) < 2 or min(shares.values()) > NUMA_FULL_RATIO or max(shares.values()) < NUMA_EMPTY_RATIO:
        return
    bursts, sums = Bursts(facts, "numa"), facts.sums
    fullest, emptiest = min(shares, key=lambda one: shares[one]), max(shares, key=lambda one: shares[one])
    for name, node in bursts.moved:
        if name != "numa_miss":
            continue
        given = sums.total("numa", "numa_hit", node) + sums.total("numa", "numa_miss", node)
        for burst in bursts.of(name, node):
            if burst.is_new and burst.added >= max(NUMA_MISS_LEAST_PAGES, NUMA_MISS_RATIO * given):
                text = (
                    f"{burst.added:,} pages came from {node} instead of from where they belong: {fullest} has "
                    f"{shares[fullest] * 100:.0f}% free, {emptiest} {shares[emptiest] * 100:.0f}%"
                )
                known = {"node": node, "counter": "numa_miss", "added": burst.added, "fullest": fullest}
                yield Symptom(
                    DETECTOR, burst.from_us, burst.to_us, text, group=node, facts=known, subject="memory",
                    cores=frozenset(),
                )  # fmt: skip


DETECTOR = Detector(
    kind="numa_misses",
    title="memory comes from the wrong NUMA node",
    reported_when="one NUMA node has less than 5% of its memory free while another has 20%, and 100,000 pages and a "
    "tenth of what a node gave were meant for another, more than in the ten minutes before",
    find=find,
    source="counters",
    role="victim",
    about="memory",
    has_hog=False,
)
