"""What could be seen, and what not: the sources of a check, and which of them are missing. Blind is not healthy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from zombiescope.base.missing import Missing

SOURCES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("per-core time", ("per-core time", "softirqs", "run queue delay")),
    ("stack samples", ("stack samples", "host PID namespace")),
    ("kernel symbols", ("kernel symbols",)),
    ("cgroup tracepoints", ("tracefs", "tracepoint cgroup:", "stack samples")),
    ("memory cgroups", ("memory cgroups", "cgroup directories", "host cgroup namespace")),
    ("cgroups with a CPU quota", ("cgroups with a CPU quota",)),
    ("pressure", ("pressure",)),
    ("memory reclaim", ("vmstat",)),
    ("softnet", ("softnet", "ksoftirqd run delay")),
    ("network cards", ("netdev", "NIC statistics", "tracepoint net:", "host network namespace")),
    ("kernel log", ("kernel log",)),
    ("systemd units", ("systemd",)),
    ("processes", ("other users' processes",)),
    ("audit", ("audit",)),
)
"""Each source and the beginnings of the names under which it is said to be missing."""

_NOT_OF_A_CHECK = ("marks", "retention", "disk")
_LOG_DEVICE = "kernel log (/dev/kmsg)"
_LOG_SINCE_BOOT = "kernel log since boot"


def gathered(said: object, more: Iterable[Missing]) -> tuple[Missing, ...]:
    """What the recorder said is missing, and more; in the order of SOURCES, each once."""
    recorder = [_missing(one) for one in said if isinstance(one, dict)] if isinstance(said, list) else []
    found = {one.source: one for one in (*recorder, *more) if one.source not in _NOT_OF_A_CHECK}
    if "kernel log" in found or _LOG_SINCE_BOOT in found:
        found.pop(_LOG_DEVICE, None)
    if "kernel log" in found:
        found.pop(_LOG_SINCE_BOOT, None)
    return tuple(sorted(found.values(), key=lambda one: _rank(one.source)))


def seen(missing: Iterable[Missing]) -> dict[str, bool]:
    """Source -> whether all of it could be seen."""
    names = [one.source for one in missing]
    return {source: not any(name.startswith(beginnings) for name in names) for source, beginnings in SOURCES}


def _rank(name: str) -> int:
    places = [place for place, (_, beginnings) in enumerate(SOURCES) if name.startswith(beginnings)]
    return places[0] if places else len(SOURCES)


def _missing(one: dict[str, Any]) -> Missing:
    source, why, grant = (str(one.get(key) or "") for key in ("source", "why", "grant"))
    return Missing(source, why, grant)
