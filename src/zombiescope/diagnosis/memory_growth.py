"""Whether a task keeps the memory that it touches, as a job does that starts, or gives it back and touches it again.

Whoever gives it back is seen at it (munmap, madvise, brk); measured, a fifth of the time of a storm. Where nothing was
seen, /proc/meminfo (anonymous and shared memory, every few seconds) says whether the node's memory grew by some of what
the faults of the same span brought in.
"""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.facts import Count
from zombiescope.diagnosis.memory_work import NEW, RELEASE, kinds
from zombiescope.diagnosis.thresholds import MEMORY_GROWN_RATIO, MEMORY_RELEASED_RATIO

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
