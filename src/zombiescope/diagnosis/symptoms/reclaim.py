"""Memory that had to be freed before it could be used: by the tasks that wanted it, or by the kernel in advance.

A large node that reads files at the speed of its disks frees pages all the time, and now and then a task does it
itself. What counts is whether tasks lost time by it: by the kernel's own account (PSI), or in the samples.
"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.base.severity import Severity
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import RECLAIM_FREED_CORES, RECLAIM_WAITED_RATIO
from zombiescope.query.node_counters import pressure, reclaim

LIMITS: tuple[tuple[str, float, Severity, str], ...] = (
    ("allocstall", 1.0, "warning", "allocations had to free memory themselves before they got any"),
    ("pgscan_direct", 1000.0, "warning", "pages were scanned by tasks that wanted memory (direct reclaim)"),
    ("compact_stall", 1.0, "warning", "allocations of large pages had to move memory first (compaction)"),
    ("pgscan_kswapd", 10_000.0, "info", "pages were scanned by kswapd"),
    ("pswpin", 100.0, "info", "pages came back from swap"),
)
"""Counter of /proc/vmstat, from how many a second on, severity, words."""
_FREES = ("try_to_free_pages", "__alloc_pages_direct_reclaim", "__alloc_pages_direct_compact", "try_to_compact_pages")


def find(facts: Facts) -> Iterator[Symptom]:
    found = reclaim(facts.sums, facts.seconds)
    if found is None:
        return
    for name, least, severity, words in LIMITS:
        rate = found.per_second[name]
        if rate >= least and severity != "info" and not _costs_time(facts):
            severity = "info"
        if rate >= least:
            text = f"{rate:,.0f} {words}, a second" if rate >= 10 else f"{rate:.1f} {words}, a second"
            yield _symptom(facts, name, severity, text)
    if found.counts["drop_slab"]:
        text = "a process wrote to drop_caches, which walks every memory cgroup, zombies included"
        yield _symptom(facts, "drop_slab", "info", text)
    kills = found.counts["oom_kill"]
    if kills and not any(event.kind == "oom_kill" for event in facts.events):
        yield _symptom(facts, "oom_kill", "critical", f"the kernel OOM-killed {kills} processes")


def _costs_time(facts: Facts) -> bool:
    """True where neither was measured: nothing says that it cost none."""
    psi = facts.sums.known("pressure", "some_us", "memory")
    if psi and (pressure(facts.sums, facts.seconds)["memory"].some or 0.0) >= RECLAIM_WAITED_RATIO:
        return True
    grid = facts.samples
    freeing = int((grid.in_kernel & grid.with_function(*_FREES)).sum()) if len(grid) else 0
    return freeing / grid.hz / max(facts.seconds, 1e-6) >= RECLAIM_FREED_CORES if len(grid) else not psi


def _symptom(facts: Facts, counter: str, severity: Severity, text: str) -> Symptom:
    rule = counter if severity == "critical" else ""
    found = {"counter": counter}
    return Symptom(DETECTOR, facts.start_us, facts.end_us, text, severity, None, "memory", found, finding=rule)


DETECTOR = Detector(
    kind="reclaim",
    title="tasks waited for memory to be freed",
    reported_when="allocations stalled for memory or for compaction once per second or more, or tasks scanned 1,000 "
    "pages per second, and that cost time: 1% by the kernel's account, or 0.05 of a CPU. Without that "
    "cost it is a note, as are 10,000 pages per second scanned by kswapd, 100 per second from swap, and "
    "a write to drop_caches; an OOM kill that no log line reports is critical",
    find=find,
    source="counters",
    role="victim",
    about="memory",
    begins="window",
    has_hog=False,
    is_remark=True,
)
