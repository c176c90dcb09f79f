"""Memory is mapped, touched and released so fast that faults fill a core; or many threads wait for one
address space."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.excess import counter, own_part, unusual
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.memory_balance import balance
from zombiescope.diagnosis.memory_work import CORE_DUMP, LOCK, NEW, RELEASE, SWAP, kinds
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured, signature
from zombiescope.diagnosis.patterns import large_fork
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.thresholds import (
    CORE_DUMP_SHARE,
    FAULTS_FEW_PER_S,
    FAULTS_HUGE_PER_S,
    FAULTS_MANY_PER_S,
    FAULTS_PER_PROCESS,
    FAULTS_STARTED_PER_S,
    FAULTS_SWAPPED_PER_S,
)
from zombiescope.model.plans.step import Step, advice, command

_FAULT = (
    "asm_exc_page_fault exc_page_fault do_user_addr_fault __do_page_fault do_page_fault async_page_fault page_fault"
    " do_mem_abort do_translation_fault el0_da el0_ia handle_mm_fault"
)
_FUNCTIONS = " ".join((_FAULT, *sorted(RELEASE.functions | LOCK.functions)))


def examine(case: Case) -> Evidence:
    swaps = next(iter(kinds(case.profile)), None) is SWAP
    return Evidence(
        (*_counters(case, swaps), *_by_new_processes(case), *_ordinary(case)),
        case.answerable_hog,
        f"{case.hog.name} {SWAP.does}"
        if swaps
        else f"{case.hog.name} spends its time in page faults: it maps, touches and releases memory again and again",
        Fix(
            f"give {case.hog.name} more memory, or something else less"
            if swaps
            else f"let {case.hog.name} keep its memory: an allocator that does not return it at once, or fewer workers",
            tuple(_steps(case, swaps)),
        ),
    )


def _counters(case: Case, swaps: bool) -> Iterator[Measurement]:
    faults, huge = case.count("vmstat", "pgfault"), case.count("vmstat", "thp_fault_alloc")
    few = None if swaps or (huge is not None and huge.rate >= FAULTS_HUGE_PER_S) else FAULTS_FEW_PER_S
    yield unusual(case, "page faults", "pgfault", faults, counter("vmstat", "pgfault"), _FUNCTIONS,
                  least=FAULTS_MANY_PER_S, refutes_below=few)  # fmt: skip
    yield unusual(case, "huge pages cleared", "thp_fault_alloc", huge, counter("vmstat", "thp_fault_alloc"), _FUNCTIONS,
                  least=FAULTS_HUGE_PER_S)  # fmt: skip
    if swaps:
        back = case.count("vmstat", "pswpin")
        yield unusual(case, "pages that came back from swap", "pswpin", back, counter("vmstat", "pswpin"), _FAULT,
                      least=FAULTS_SWAPPED_PER_S)  # fmt: skip


def _steps(case: Case, swaps: bool) -> Iterator[Step]:
    """Malloc's settings are for memory of its own; what is shared, mapped or swapped has nothing to do with them."""
    yield advice(
        SWAP.advice if swaps else "glibc: start it with MALLOC_TRIM_THRESHOLD_=-1 MALLOC_MMAP_THRESHOLD_=4294967296"
    )
    if case.hog.pid:
        where = shell("perf", "trace", "-F", "all", "--no-syscalls", "-p", case.hog.pid, "--", "sleep", 2)
        yield command(where, "where it faults")
    else:
        yield command("perf trace -F all --no-syscalls -a -- sleep 2", "who faults, and where")


def _by_new_processes(case: Case) -> list[Measurement]:
    """Faults that new processes take are the storm of processes, not of faults."""
    faults, made = case.count("vmstat", "pgfault"), case.count("stat", "processes")
    if faults is None or made is None or made.rate < FAULTS_STARTED_PER_S or not _come_and_go(case):
        return []
    own = own_part(case, _FUNCTIONS)  # of a large node's faults most are of others
    each = faults.added * (1.0 if own is None else own) / max(made.added, 1)
    text = f"{made.added:,} new processes took {each:,.0f} faults each"
    return [measured(text, made.added, "processes", "counters", False if each < FAULTS_PER_PROCESS else None)]


def _come_and_go(case: Case) -> bool:
    """Whether the hog is processes that are started and end; those of others take their own faults."""
    return case.hog_comes_and_goes or not case.hog_samples.any()


def _ordinary(case: Case) -> list[Measurement]:
    """Most of it is work that healthy programs do, memory that is touched once and kept, or the end of a program."""
    dumping = case.profile.share(case.profile.total(*CORE_DUMP.functions))
    if dumping >= CORE_DUMP_SHARE:
        text = f"{dumping * 100:.0f}% of its kernel time writes a core dump"
        return [measured(text, round(dumping, 4), "ratio", "samples", False)]
    if large_fork.is_one(case):
        return [replace(large_fork.measurement(case), says="refutes")]
    found = balance(case)
    if not found.is_ordinary:
        return []
    first = next(iter(found.ordinary))
    also = " and keeps it" if first is NEW else ""
    text = f"{found.share * 100:.0f}% of its kernel time is ordinary work with memory: it {first.does}{also}"
    return [measured(text, round(found.share, 4), "ratio", "samples", False)]


PATTERN = Pattern(
    id="page-fault-storm",
    title="Page faults fill the kernel time",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="A program that allocates and frees large blocks, or many threads of one address space that map and "
    "unmap: handle_mm_fault, clear_page and waits for mmap_lock. Or its pages come back from swap.",
    confirmed_by="100,000 more page faults, 100 more cleared huge pages or 1,000 more pages from swap per second than "
    "usual; without a baseline, the hog's own share counts, and counts half.",
    refuted_by="Fewer than 20,000 page faults per second; faults of new processes, of a core dump or of a large fork; "
    "or 40% of the kernel time, and more than allocating and freeing take, fills shared memory, reads "
    "mapped files, pins, frees at exit, or touches memory that is kept, which is memory-turnover.",
    remedy="Keep memory in the allocator (jemalloc, thresholds of glibc), use huge pages for large buffers, fewer "
    "workers.",
    stop_gap="run fewer workers at once; a running program cannot switch allocators",
    examine=examine,
    numbers_tell=True,
    signatures=(
        signature(_FAULT, means="memory is touched for the first time"),
        signature(
            "sys_munmap vm_munmap __vm_munmap do_munmap __do_munmap do_mas_munmap do_vmi_munmap sys_madvise do_madvise",
            "unmap_page_range zap_pte_range zap_page_range zap_page_range_single zap_page_range_single_batched"
            " unmap_vmas free_pages_and_swap_cache unmap_region vms_clear_ptes",
            means="memory is released",
        ),
        signature(
            "down_read down_write down_read_killable down_write_killable mmap_read_lock mmap_write_lock"
            " lock_mm_and_find_vma vm_mmap_pgoff __vm_munmap do_mprotect_pkey",
            "rwsem_down_read_slowpath rwsem_down_write_slowpath rwsem_spin_on_owner rwsem_optimistic_spin"
            # before 5.3
            " rwsem_down_read_failed rwsem_down_write_failed rwsem_down_write_failed_killable"
            " call_rwsem_down_read_failed call_rwsem_down_write_failed call_rwsem_down_write_failed_killable",
            means="threads wait for their address space",
        ),
    ),
    also=RELEASE.functions | {"sys_mmap", "vm_mmap_pgoff", "do_mmap"},
    culprit="The task that causes the faults.",
    suspected_first=True,
    known_from="vmstat of the kernel; measured on 6.18",
)
