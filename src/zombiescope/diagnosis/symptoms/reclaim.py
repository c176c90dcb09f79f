"""Memory that had to be freed before it could be used: by the tasks that wanted it, or by the kernel in advance."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope._severity import Severity
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.views.pressure import reclaim

LIMITS: tuple[tuple[str, float, Severity, str], ...] = (
    ("allocstall", 1.0, "warning", "allocations had to free memory themselves before they got any"),
    ("pgscan_direct", 1000.0, "warning", "pages were scanned by tasks that wanted memory (direct reclaim)"),
    ("compact_stall", 1.0, "warning", "allocations of large pages had to move memory first (compaction)"),
    ("pgscan_kswapd", 10_000.0, "info", "pages were scanned by kswapd"),
    ("pswpin", 100.0, "info", "pages came back from swap"),
)
"""Counter of /proc/vmstat, from how many a second on, severity, words."""


def find(facts: Facts) -> Iterator[Symptom]:
    found = reclaim(facts.sums, facts.seconds)
    if found is None:
        return
    for name, least, severity, words in LIMITS:
        rate = found.per_second[name]
        if rate >= least:
            text = f"{rate:,.0f} {words}, a second" if rate >= 10 else f"{rate:.1f} {words}, a second"
            yield _symptom(facts, name, severity, text)
    if found.counts["drop_slab"]:
        text = "somebody wrote to drop_caches: that walks every memory cgroup, zombies included"
        yield _symptom(facts, "drop_slab", "info", text)
    kills = found.counts["oom_kill"]
    if kills and not any(event.kind == "oom_kill" for event in facts.events):
        yield _symptom(facts, "oom_kill", "critical", f"the kernel killed {kills} processes for want of memory")


def _symptom(facts: Facts, counter: str, severity: Severity, text: str) -> Symptom:
    rule = counter if severity == "critical" else ""
    found = {"counter": counter}
    return Symptom(DETECTOR, facts.start_us, facts.end_us, text, severity, None, "memory", found, finding=rule)


DETECTOR = Detector(
    kind="reclaim",
    title="memory had to be freed first",
    reported_when="allocations stalled for memory or for compaction once a second or more, or tasks scanned 1,000 "
    "pages a second; 10,000 pages a second scanned by kswapd, 100 a second from swap, or a write to drop_caches is a "
    "note; a kill for want of memory that no log line reports is critical",
    find=find,
    source="counters",
    role="victim",
    about="memory",
    begins="window",
    has_hog=False,
    is_remark=True,
)
