"""Which processes were on which GPU, from when to when: the table `gpu_processes` as spans.

A row is written when a process comes, when it leaves, and again in every segment; what holds at a moment is therefore
found within the hour before it. Pids are those of the host and are used again, so a process is told by its start, too.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from zombiescope.base.time import HOUR_US
from zombiescope.store import columns
from zombiescope.store.container_names import NAMELESS, ContainerName, read
from zombiescope.store.reader import Recording


@dataclass(frozen=True, slots=True)
class Tenant:
    """A process on a GPU; `to_us` None: it was still there."""

    gpu: int
    pid: int
    start_ticks: int | None
    comm: str | None
    cgroup: str | None
    unit: str | None
    container: str | None
    pod: str | None
    """Its uid."""
    memory_bytes: int | None
    from_us: int
    to_us: int | None
    named: ContainerName = NAMELESS

    def overlaps(self, from_us: int, to_us: int) -> bool:
        return self.from_us < to_us and (self.to_us is None or self.to_us > from_us)

    @property
    def job(self) -> str:
        """What its processes have in common: the pod, the container, the unit or the cgroup; else the program."""
        return self._owner or f"{self.comm}"

    @property
    def has_owner(self) -> bool:
        """It belongs to more than its own name."""
        return self._owner is not None

    @property
    def _owner(self) -> str | None:
        group = self.cgroup if self.cgroup not in (None, "", "/") else None
        return self.pod or self.container or self.unit or group


def tenants(recording: Recording, start_us: int, end_us: int) -> list[Tenant]:
    """Of a window, in the order in which they came."""
    rows: defaultdict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in columns.records(recording.table("gpu_processes", start_us - HOUR_US, end_us)):
        if row["gpu"] is not None and row["pid"] is not None:
            rows[row["gpu"], row["pid"], row["start_ticks"]].append(row)
    boxes = {row["container"] for same in rows.values() for row in same if row["container"]}
    names = read(recording, start_us, end_us, boxes) if boxes else None
    found = [_tenant(sorted(same, key=lambda row: row["time"]), names) for same in rows.values()]
    return sorted((one for one in found if one.overlaps(start_us, end_us)), key=lambda one: (one.from_us, one.gpu))


def _tenant(rows: list[dict[str, Any]], names: Any) -> Tenant:
    last = rows[-1]
    known = {
        name: next((row[name] for row in reversed(rows) if row[name] is not None), None)
        for name in ("comm", "cgroup", "unit", "container", "pod", "memory_bytes")
    }
    named = NAMELESS if names is None else names.of(known["container"], known["pod"])
    ended_us = last["time"] if last["ended"] else None
    return Tenant(
        last["gpu"], last["pid"], last["start_ticks"], **known, from_us=rows[0]["time"], to_us=ended_us, named=named
    )
