"""Whether what the kernel does with a task's memory is ordinary work, or memory that is taken and given back.

Most programs do some of both: whoever fills shared memory takes faults of its own beside it, and a storm ends some of
its processes. What there is more of says which it is; the entry into a fault, before it is known what for, counts for
the storm. What is given back is of the kind of what was touched: who takes batches out of shared memory, or reads files
through maps, unmaps each of them when it is done. Asked once, so that the two patterns cannot both say no, or both yes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.facts import Count
from zombiescope.diagnosis.memory_work import EXIT, FILE, LOCK, NEW, RELEASE, SHARED, START, SWAP, Kind, kinds
from zombiescope.diagnosis.thresholds import MEMORY_GROWN_RATIO, MEMORY_RELEASED_RATIO, MEMORY_WORK_LEAST_SHARE

_STORMS = (NEW, RELEASE, LOCK, SWAP, START)
"""And the end of processes, where hundreds of them come and go: that of one is ordinary."""
_MAPPED = (SHARED, FILE)
"""What a program has by mapping it, and unmaps when it has read it."""


@dataclass(frozen=True, slots=True)
class Balance:
    ordinary: Mapping[Kind, float]
    """The part that each ordinary kind of work has of the hog's kernel time, the most first."""
    storm: float
    """The part of what a storm does."""

    @property
    def share(self) -> float:
        return sum(self.ordinary.values())

    @property
    def is_ordinary(self) -> bool:
        return self.share >= MEMORY_WORK_LEAST_SHARE and self.share > self.storm


def _by_what_was_touched(found: Mapping[Kind, float]) -> dict[Kind, float]:
    """Giving back is divided as touching is."""
    mapped = {kind: found[kind] for kind in _MAPPED if kind in found}
    touched = sum(mapped.values()) + found.get(NEW, 0.0)
    if not mapped or RELEASE not in found:
        return dict(found)
    released = found[RELEASE]
    parts = {kind: part + released * part / touched for kind, part in mapped.items()}
    divided = {**found, **parts, RELEASE: released * found.get(NEW, 0.0) / touched}
    return dict(sorted(divided.items(), key=lambda item: -item[1]))


def balance(case: Case) -> Balance:
    found = _by_what_was_touched({kind: case.profile.share(count) for kind, count in kinds(case.profile).items()})
    kept = NEW in found and is_kept(case)
    storms = {*_STORMS, EXIT} if case.hog_comes_and_goes else {*_STORMS}
    ordinary = {
        kind: part
        for kind, part in found.items()
        if (kind.is_ordinary and kind not in storms) or (kept and kind is NEW)
    }
    return Balance(ordinary, sum(part for kind, part in found.items() if kind in storms and kind not in ordinary))


# --- memory growth ----------------------------------------------------------------------------------------------------
# Whether a task keeps the memory that it touches, as a job does that starts, or gives it back and touches it again.
#
# Whoever gives it back is seen at it (munmap, madvise, brk); measured, a fifth of the time of a storm. Where nothing
# was seen, /proc/meminfo (anonymous and shared memory, every few seconds) says whether the node's memory grew by some
# of what the faults of the same span brought in.

PAGE, HUGE_PAGE = 4096, 2 << 20
_FAULT = ("handle_mm_fault",)
_LEVELS = ("anon_pages_bytes", "shmem_bytes")


def is_kept(case: Case) -> bool:
    found = kinds(case.profile)
    if found.get(RELEASE, 0) >= MEMORY_RELEASED_RATIO * found.get(NEW, 0):
        return False
    grown, touched = _grown(case), _touched(case)
    return grown is None or not touched or grown >= MEMORY_GROWN_RATIO * touched


def _grown(case: Case) -> int | None:
    """Between the last reading before the incident and the highest one in it or directly after it. None where there
    is none since it began: the memory of a node with faults never stands still, so it was not read yet."""
    before = [case.facts.gauge("meminfo", name, case.from_us) for name in _LEVELS]
    after = [case.peak("meminfo", name, fresh=True) for name in _LEVELS]
    rose = [then - at for at, then in zip(before, after, strict=True) if at is not None and then is not None]
    return sum(rose) if rose else None


def _touched(case: Case) -> int | None:
    """By the hog: its part of all faults, as its samples show it."""
    small, huge = case.count("vmstat", "pgfault"), case.count("vmstat", "thp_fault_alloc")
    everybody, own = case.cores_in(*_FAULT), case.cores_in(*_FAULT, chosen=case.hog_samples)
    if small is None or not everybody or own is None:
        return None
    return int((small.added * PAGE + _added(huge) * HUGE_PAGE) * own / everybody)


def _added(count: Count | None) -> int:
    return 0 if count is None else count.added
