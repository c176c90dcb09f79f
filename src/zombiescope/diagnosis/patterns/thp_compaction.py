"""Memory is compacted to make huge pages: pages are moved aside, by the task that faults or by kcompactd."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.excess import counter, unusual
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Pattern, counted, signature
from zombiescope.diagnosis.plan import set_sysctl, setting, write_file
from zombiescope.diagnosis.thresholds import COMPACT_SCANNED_PER_S
from zombiescope.model.plans.step import Step

DEFRAG = "/sys/kernel/mm/transparent_hugepage/defrag"

_COMPACT = (
    "compact_zone compact_zone_order isolate_migratepages_block isolate_freepages_block isolate_freepages"
    " isolate_migratepages migrate_pages fast_isolate_freepages"
)


def examine(case: Case) -> Evidence:
    scanned, stalls = case.count("vmstat", "compact_migrate_scanned"), case.count("vmstat", "compact_stall")
    still = scanned is not None and stalls is not None and scanned.added == 0 and stalls.added == 0
    found = (
        counted(
            "tasks that waited for compaction",
            "compact_stall",
            stalls,
            "counters",
            refutes_below=1e-9 if still else None,
        ),
        unusual(
            case,
            "pages scanned for compaction",
            "compact_migrate_scanned",
            scanned,
            counter("vmstat", "compact_migrate_scanned"),
            f"{_COMPACT} khugepaged collapse_huge_page",
            least=COMPACT_SCANNED_PER_S,
        ),
        counted(
            "huge pages that could not be allocated",
            "thp_fault_fallback",
            case.count("vmstat", "thp_fault_fallback"),
            "counters",
        ),
    )
    return Evidence(
        found,
        case.hog_program or case.caller("__alloc_pages_direct_compact", "do_huge_pmd_anonymous_page"),
        f"{case.hog.name} spends its time moving memory together for huge pages",
        Fix(
            "make huge pages in the background, or only for programs that ask for them",
            tuple(_steps(case)),
        ),
    )


def _steps(case: Case) -> Iterator[Step]:
    """Programs that wait for compaction: let the kernel's thread do it. The thread itself: let it do less."""
    if case.hog.comm is None or not case.hog.comm.startswith("kcompactd"):
        yield from write_file(
            DEFRAG, "defer+madvise", setting(case.facts, DEFRAG), "only programs that ask for huge pages wait for them",
            touches="how every program gets huge pages: most get them later, from the background",
        )  # fmt: skip
        return
    yield from set_sysctl(
        case.facts, "vm.compaction_proactiveness", "0", "no compaction before it is needed",
        touches="huge pages are made on request, so a request may take longer",
    )  # fmt: skip


PATTERN = Pattern(
    id="thp-compaction",
    title="Memory is compacted for huge pages",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="Faulting tasks, or kcompactd and khugepaged, move pages aside to make room for huge pages.",
    confirmed_by="50,000 more pages per second than usual are scanned for compaction; without a baseline, the hog's "
    "own share counts, and counts half.",
    refuted_by="compact_stall and compact_migrate_scanned did not advance: huge pages are not involved.",
    remedy="Set transparent_hugepage/defrag to defer+madvise; keep memory free for kcompactd.",
    stop_gap="set transparent_hugepage/defrag to defer+madvise until the next boot",
    examine=examine,
    numbers_tell=True,
    signatures=(
        signature("__alloc_pages_direct_compact try_to_compact_pages", _COMPACT, means="an allocation compacts memory"),
        signature("kcompactd kcompactd_do_work proactive_compact_node", _COMPACT, means="kcompactd compacts memory"),
        signature(
            "sysctl_compaction_handler compact_store compact_nodes compact_node __compact_pgdat",
            _COMPACT,
            means="memory is compacted on request",
        ),
        signature(
            "khugepaged collapse_huge_page hpage_collapse_scan_pmd khugepaged_scan_pmd",
            means="khugepaged makes huge pages",
        ),
    ),
    hog="The task that faults, or kcompactd.",
    culprit="The task that asked for huge pages.",
    suspected_first=True,
    known_from="vmstat of the kernel; bcc compactsnoop; on 6.18 with vm.compact_memory",
)
