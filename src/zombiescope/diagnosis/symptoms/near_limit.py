"""A table of the kernel that is nearly full: tasks, open files, shared memory. From then on fork() or open() fails for
everybody, or whoever touches a new page of /dev/shm is killed by SIGBUS.

The limit of one cgroup is told by the kernel's log when it is hit (an event). Sockets are not judged here: how many are
too many depends on where they go (patterns/port_exhaustion.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from zombiescope.base.severity import Severity
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import GAUGE_LATE_US, LIMIT_FULL_RATIO, SHM_FULL_RATIO
from zombiescope.store.thresholds import NEAR_LIMIT

SHARED_MEMORY = "shared memory"
NODE = "node"
"""The key of the node's own /dev/shm."""


class Limit(NamedTuple):
    what: str
    used: tuple[str, str]
    """Source and name of what is in use."""
    limits: tuple[str, ...]
    """Of the source `limits`: whichever is the least."""


LIMITS = (
    Limit("tasks", ("loadavg", "tasks"), ("pid_max", "threads_max")),
    Limit("open files", ("limits", "files_open"), ("files_max",)),
)


def find(facts: Facts) -> Iterator[Symptom]:
    for limit in LIMITS:
        used = facts.peak(*limit.used, facts.start_us, facts.end_us)
        known = {name: facts.gauge("limits", name) for name in limit.limits}
        most = {name: value for name, value in known.items() if value}
        if used is None or not most:
            continue
        name = min(most, key=lambda one: most[one])
        if used >= NEAR_LIMIT * most[name]:
            yield _symptom(facts, limit, name, used, most[name])
    yield from _shared_memory(facts)


def _shared_memory(facts: Facts) -> Iterator[Symptom]:
    """Of the node, and of each container of which it was read. A level holds until the next one is read: the one from
    before the window counts in it, and the last one for as long as the next may take. A container that ended has
    none."""
    sizes, before = (
        facts.gauges("shm", name, at_us)
        for name, at_us in (("size_bytes", facts.end_us), ("used_bytes", facts.start_us))
    )
    for (name, key), (time, used) in facts.readings("shm").items():
        size = sizes.get(key)
        if name != "used_bytes" or not size:
            continue
        levels = [(facts.start_us, before[key])] if key in before else []
        levels += zip(time.tolist(), used.tolist(), strict=True)
        full = [number for number, (_, level) in enumerate(levels) if level >= SHM_FULL_RATIO * size]
        if not full:
            continue
        most, container = max(level for _, level in levels), None if key == NODE else key
        ends = [*(at_us for at_us, _ in levels[1:]), min(levels[-1][0] + GAUGE_LATE_US, facts.end_us)]
        from_us, to_us = levels[full[0]][0], ends[full[-1]]
        whose = "the node" if container is None else f"the container {_named(facts, key)}"
        much = f"{most / size * 100:.0f}% full: {most / 1e6:,.0f} of {size / 1e6:,.0f} MB"
        text = f"the shared memory (/dev/shm) of {whose} is {much}"
        known = {"what": SHARED_MEMORY, "limit": "size_bytes", "used": most, "most": size, "source": "shm"}
        yield Symptom(
            DETECTOR, from_us, to_us, text, "warning", group=f"shm {key}",
            facts=known | ({"container": container} if container else {}), subject="memory", cores=frozenset(),
        )  # fmt: skip


def _named(facts: Facts, key: str) -> str:
    known = next((one for name, one in facts.recent_containers.items() if name.startswith(key)), None)
    return (known.pod or known.name if known is not None else None) or key


def _symptom(facts: Facts, limit: Limit, name: str, used: int, most: int) -> Symptom:
    text = f"{used:,} {limit.what} of at most {most:,} ({name})"
    known = {"what": limit.what, "limit": name, "used": used, "most": most, "source": limit.used[0]}
    severity: Severity = "critical" if used >= LIMIT_FULL_RATIO * most else "warning"
    return Symptom(
        DETECTOR, facts.start_us, facts.end_us, text, severity, group=limit.what, facts=known, subject="memory",
        cores=frozenset(),
    )  # fmt: skip


DETECTOR = Detector(
    kind="near_limit",
    title="a table of the kernel is nearly full",
    reported_when="tasks or open files are at 85% of what the kernel allows, critical from 97% on; or /dev/shm of the "
    "node or of a container is 95% full",
    find=find,
    source="counters",
    role="victim",
    about="memory",
    begins="window",
    has_hog=False,
)
