"""The kernel unmaps pages to see from which NUMA node they are used, and moves them."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.excess import counter, unusual
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Pattern, counted, signature
from zombiescope.diagnosis.plan import set_sysctl
from zombiescope.diagnosis.thresholds import NUMA_FAULTS_PER_S, NUMA_UPDATED_PER_S
from zombiescope.model.plans.step import advice

_MARKS = "task_numa_work change_prot_numa"
_MOVES = (
    "do_numa_page do_huge_pmd_numa_page migrate_misplaced_folio migrate_misplaced_page migrate_misplaced_transhuge_page"
)


def examine(case: Case) -> Evidence:
    updated, faults = case.count("vmstat", "numa_pte_updates"), case.count("vmstat", "numa_hint_faults")
    still = updated is not None and faults is not None and updated.added == 0 and faults.added == 0
    return Evidence(
        (
            unusual(
                case,
                "page table entries marked",
                "numa_pte_updates",
                updated,
                counter("vmstat", "numa_pte_updates"),
                _MARKS,
                least=NUMA_UPDATED_PER_S,
                refutes_below=1e-9 if still else None,
            ),
            unusual(
                case,
                "hinting faults",
                "numa_hint_faults",
                faults,
                counter("vmstat", "numa_hint_faults"),
                _MOVES,
                least=NUMA_FAULTS_PER_S,
            ),
            counted("pages moved", "numa_pages_migrated", case.count("vmstat", "numa_pages_migrated"), "counters"),
        ),
        case.answerable_hog,
        f"automatic NUMA balancing unmaps and moves the pages of {case.hog.name}",
        Fix(
            "turn automatic NUMA balancing off and place memory by hand",
            (
                *set_sysctl(
                    case.facts,
                    "kernel.numa_balancing",
                    "0",
                    touches="memory of all programs stays where it is, also where it would be better moved",
                ),
                advice("start it bound to one node: numactl --cpunodebind=0 --membind=0"),
            ),
        ),
    )


PATTERN = Pattern(
    id="numa-balancing",
    title="Automatic NUMA balancing moves pages",
    proof="literature",
    looks_like="Tasks with much memory spend 8 to 31 ms at a time in task_numa_work, which unmaps pages on purpose, "
    "and then fault them back in and move them.",
    confirmed_by="50,000 more marked page table entries, or 10,000 more hinting faults, per second than usual; without "
    "a baseline, the hog's own share counts, and counts half.",
    refuted_by="numa_pte_updates and numa_hint_faults did not advance.",
    remedy="Set kernel.numa_balancing=0 and bind the job to its node.",
    stop_gap="set kernel.numa_balancing to 0 until the next boot",
    examine=examine,
    numbers_tell=True,
    signatures=(
        signature(_MARKS, means="pages are unmapped to see who uses them"),
        signature(_MOVES, means="pages are moved"),
    ),
    culprit="The process whose memory is balanced.",
    known_from="DeepEP 624, kernel 5.15",
)
