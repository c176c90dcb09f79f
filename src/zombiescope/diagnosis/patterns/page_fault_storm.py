"""Memory is mapped, touched and released so fast that faults fill a core; or many threads wait for one
address space."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix, advice, command
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, counted, measured, signature
from zombiescope.diagnosis.plan import shell

FAULTS_PER_S = 100_000
"""A fault takes 0.5 to 2 us: from here on faults take 5 to 20% of a core, and the frames say whose."""
FEW_PER_S = 20_000
HUGE_PER_S = 100
"""Clearing a huge page takes about 100 us."""
STORM_PER_S = 50
FAULTS_A_PROCESS = 3_000
"""A process that starts and ends makes some hundred faults."""


def examine(case: Case) -> Evidence:
    faults, huge = case.count("vmstat", "pgfault"), case.count("vmstat", "thp_fault_alloc")
    few = None if huge is not None and huge.rate >= HUGE_PER_S else FEW_PER_S
    return Evidence(
        (
            counted("page faults", "pgfault", faults, "counters", confirms_from=FAULTS_PER_S, refutes_below=few),
            counted("huge pages cleared", "thp_fault_alloc", huge, "counters", confirms_from=HUGE_PER_S),
            *_by_new_processes(case),
        ),
        case.answerable_hog,
        f"{case.hog.name} spends its time in page faults: it maps, touches and releases memory again and again",
        Fix(
            f"let {case.hog.name} keep its memory: an allocator that does not return it at once, or fewer workers",
            (
                advice("glibc: start it with MALLOC_TRIM_THRESHOLD_=-1 MALLOC_MMAP_THRESHOLD_=4294967296"),
                command(
                    shell("perf", "trace", "-F", "all", "--no-syscalls", "-p", case.hog.pid, "--", "sleep", 2),
                    "where it faults",
                )
                if case.hog.pid
                else command("perf trace -F all --no-syscalls -a -- sleep 2", "who faults, and where"),
            ),
        ),
    )


def _by_new_processes(case: Case) -> list[Measurement]:
    """Faults that new processes take are the storm of processes, not of faults."""
    faults, made = case.count("vmstat", "pgfault"), case.count("stat", "processes")
    if faults is None or made is None or made.rate < STORM_PER_S:
        return []
    each = faults.added / max(made.added, 1)
    text = f"{made.added:,} new processes took {each:,.0f} faults each"
    return [measured(text, made.added, "processes", "counters", False if each < FAULTS_A_PROCESS else None)]


PATTERN = Pattern(
    id="page-fault-storm",
    title="Page faults fill the kernel time",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="A program that allocates and frees large blocks, or many threads of one address space that map and "
    "unmap: handle_mm_fault, clear_page and waits for mmap_lock.",
    confirmed_by="100,000 or more page faults a second, or 100 huge pages cleared.",
    refuted_by="Fewer than 20,000 page faults a second; or they are the faults of new processes.",
    remedy="Keep memory in the allocator (jemalloc, thresholds of glibc), use huge pages for large buffers, fewer "
    "workers.",
    examine=examine,
    numbers_tell=True,
    signatures=(
        signature(
            "asm_exc_page_fault exc_page_fault do_user_addr_fault __do_page_fault do_page_fault async_page_fault "
            "page_fault"
            " do_mem_abort do_translation_fault el0_da el0_ia handle_mm_fault",
            means="memory is touched for the first time",
        ),
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
    culprit="The task that faults.",
    suspected_first=True,
    known_from="vmstat of the kernel; measured on 6.18",
)
