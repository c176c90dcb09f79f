"""What an experiment measures: the incident's own measure, in periods of a fraction of a second.

    cgroups made        the count of cgroup:cgroup_mkdir over all CPUs, for leaks
    waiting time        how long the incident's victims waited for its cores: the threads and the card that a snapshot
                        of the schedule shows as delayed by the suspect; without a snapshot, everyone but the suspect.
                        From rings of the schedule that are opened for the experiment (kernel/schedule.py)
    training steps      what the program reported (zombiescope.step), as the recorder wrote it down: read at the end

Which one it is, the symptoms say. An incident that has none of them is not tried."""

from __future__ import annotations

import os
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from typing import Any

from zombiescope._native import ScheduleDecoder, perf_event_open
from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis.incident import Incident
from zombiescope.fix import freezer
from zombiescope.fix.experiment import Measure
from zombiescope.fix.step import ActionFailedError
from zombiescope.kernel import cpu, perf_event, process, schedule, tracefs
from zombiescope.kernel.schedule import ScheduleRing
from zombiescope.query.delays import delays
from zombiescope.store.reader import Recording

LEAKS = frozenset({"zombie-memcg", "cgroup-litter", "endless-restart"})
WAITED_FOR = frozenset({"core_saturated", "stall", "nic_starved", "run_queue_delay", "core_crowded", "time_hole"})
RING_BYTES, OTHER_RING_BYTES = 2 << 20, 64 << 10
MOST_CORES = 4
MOST_VICTIMS = 8
SETTLE_S = 4.0
"""What the recorder is behind with steps."""
SOFTIRQS_OF_CARDS = (2, 3)

Opened = Callable[[], AbstractContextManager[Recording]]


def of_incident(incident: Incident, opened: Opened, suspect: str) -> Measure:
    """`suspect`: its cgroup's directory. Raises ActionFailedError where nothing of the incident can be measured."""
    cause = incident.causes[0]
    cores = sorted({one.cpu for one in incident.symptoms if one.cpu is not None and one.kind in WAITED_FOR})
    if cause.pattern in LEAKS:
        return CgroupsMade()
    if incident.cost is not None and _steps_of(opened, incident.from_us, incident.to_us):
        return Steps(opened)
    if cores:
        pids = frozenset(freezer.pids(suspect))
        return Waiting(cores[:MOST_CORES], suspect, *_victims(opened, incident, pids, cores[:MOST_CORES]))
    raise ActionFailedError(
        "nothing of this incident changes within a fraction of a second: no leak of cgroups, no core that others wait "
        "for, no training steps"
    )


@dataclass(slots=True)
class CgroupsMade:
    """By anybody on this node."""

    what: str = "cgroups made"
    unit: str = "cgroups"
    grows: bool = False
    _fds: list[int] = field(default_factory=list)

    def __enter__(self) -> CgroupsMade:
        try:
            point = tracefs.read_format(_tracefs(), "cgroup", "cgroup_mkdir")
            attr = perf_event.packed_attr(perf_event.TYPE_TRACEPOINT, point.number, sample=0, flags=0, period=0)
            for number in cpu.online() or ():
                fd = perf_event_open(attr, -1, number, -1, perf_event.OPEN_CLOEXEC)
                self._fds.append(fd)
                perf_event.enable(fd)
        except OSError as error:
            self.__exit__()
            raise ActionFailedError(f"cgroups made cannot be counted: {error}") from error
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()

    def read(self) -> int:
        return sum(int.from_bytes(os.read(fd, 8), "little") for fd in self._fds)

    def amounts(self, spans: Sequence[tuple[Any, Any]]) -> list[float | None]:
        return [float(last - first) for first, last in spans]


@dataclass(slots=True)
class Waiting:
    """Seconds that others waited for these cores. A snapshot is taken at the end of each period."""

    cores: list[int]
    suspect: str
    victims: frozenset[int] = frozenset()
    """Threads; none: everyone's waits count."""
    cards: bool = True
    """Whether the softirqs of network cards count."""
    unit: str = "s"
    grows: bool = False
    _rings: list[ScheduleRing] = field(default_factory=list)
    _waits: list[tuple[int, int]] = field(default_factory=list)
    """(from, to) of every wait so far, in nanoseconds."""
    _done_ns: int = 0
    _known: list[tuple[int, int]] = field(default_factory=list)
    """Spans for which the schedule is known."""

    @property
    def what(self) -> str:
        return f"waiting time for core{'' if len(self.cores) == 1 else 's'} {cpu.format_list(self.cores)}"

    def __enter__(self) -> Waiting:
        try:
            found, _ = schedule.find(_tracefs())
            for number in cpu.online() or ():
                size = RING_BYTES if number in self.cores else OTHER_RING_BYTES
                self._rings.append(schedule.open_ring(number, found, size, watched=self.cores))
        except OSError as error:
            self.__exit__()
            raise ActionFailedError(f"the schedule of {self.what} cannot be read: {error}") from error
        self._done_ns = time.monotonic_ns()
        return self

    def __exit__(self, *_: object) -> None:
        for ring in self._rings:
            with suppress(OSError):
                ring.close()
        self._rings.clear()

    def read(self) -> int:
        now_ns = time.monotonic_ns()
        self._snapshot(now_ns)
        return now_ns

    def _snapshot(self, now_ns: int) -> None:
        decoder = ScheduleDecoder(max(ring.cpu for ring in self._rings) + 1, 0)
        for ring in sorted(self._rings, key=lambda one: not one.watched):
            ring.feed(decoder)
        kinds, cpus, begins, ends, tids, _, _, _, _ = decoder.rows()
        own = _threads(self.suspect)
        for row, kind in enumerate(kinds):
            if self._counts(kind, tids[row], own) and cpus[row] in self.cores and ends[row] > self._done_ns:
                self._waits.append((max(begins[row], self._done_ns), min(ends[row], now_ns)))
        reached = max((from_ns for number, (from_ns, _) in decoder.reach().items() if number in self.cores), default=0)
        self._known.append((max(reached, self._done_ns), now_ns))
        self._done_ns = now_ns

    def _counts(self, kind: str, tid: int, own: frozenset[int]) -> bool:
        if kind == "wait":
            return tid in self.victims if self.victims else tid not in own
        return kind == "softirq wait" and self.cards and tid in SOFTIRQS_OF_CARDS

    def amounts(self, spans: Sequence[tuple[Any, Any]]) -> list[float | None]:
        return [self._amount(first, last) for first, last in spans]

    def _amount(self, first_ns: int, last_ns: int) -> float | None:
        """None where the rings had wrapped."""
        seen = sum(max(0, min(to, last_ns) - max(from_, first_ns)) for from_, to in self._known)
        if seen < 0.95 * (last_ns - first_ns):
            return None
        waited = sum(max(0, min(to, last_ns) - max(from_, first_ns)) for from_, to in self._waits)
        return waited / 1e9


@dataclass(slots=True)
class Steps:
    """Of all processes that report them."""

    opened: Opened
    what: str = "training steps"
    unit: str = "steps"
    grows: bool = True

    def __enter__(self) -> Steps:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self) -> int:
        return time.time_ns() // 1000

    def amounts(self, spans: Sequence[tuple[Any, Any]]) -> list[float | None]:
        time.sleep(SETTLE_S)
        times = _steps_of(self.opened, spans[0][0] - SECOND_US, spans[-1][1] + SECOND_US) if spans else []
        return [float(bisect_right(times, last) - bisect_left(times, first)) for first, last in spans]


def _steps_of(opened: Opened, from_us: int, to_us: int) -> list[int]:
    """When each step was reported, in order."""
    from zombiescope.store import columns

    with opened() as recording:
        rows = columns.records(recording.table("steps", from_us - 60 * SECOND_US, to_us, ("time", "took_us")))
    found = []
    for row in rows:
        at = row["time"]
        found.append(at)
        for took in row["took_us"] or ():
            at += took
            found.append(at)
    return sorted(at for at in found if from_us <= at <= to_us)


def _victims(
    opened: Opened, incident: Incident, suspect: frozenset[int], cores: Sequence[int]
) -> tuple[frozenset[int], bool]:
    """The threads that the suspect delayed most on these cores, and whether it delayed a card."""
    with opened() as recording:
        found = delays(recording, incident.from_us, incident.to_us)
    by_suspect = [one for one in found.by(suspect) if one.cpu in cores and one.victim.pid not in suspect]
    tids = [one.victim.tid for one in by_suspect if one.victim.softirq is None and one.victim.tid]
    cards = any(one.victim.softirq in ("net_rx", "net_tx") for one in by_suspect)
    return frozenset(list(dict.fromkeys(tids))[:MOST_VICTIMS]), cards or not tids


def _threads(directory: str) -> frozenset[int]:
    """Of a cgroup: what they wait for is nobody's loss but the suspect's."""
    return frozenset(tid for pid in freezer.pids(directory) for tid in process.threads(pid))


def _tracefs() -> Any:
    return tracefs.find() or tracefs.mount_privately()
