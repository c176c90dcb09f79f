"""The node is short of memory: kswapd, or every task that allocates, looks for pages to free."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.excess import counter, unusual
from zombiescope.diagnosis.facts import Count
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, counted, cpu_used, measured, signature
from zombiescope.diagnosis.thresholds import (
    RECLAIM_CORES,
    RECLAIM_EASY_RATIO,
    RECLAIM_FEW_WAITS_PER_S,
    RECLAIM_SCANNED_PER_S,
)
from zombiescope.model.plans.step import advice, command

_WHOLE_NODE = "balance_pgdat try_to_free_pages __alloc_pages_direct_reclaim"
"""A cgroup at its limit does not come here."""
_LISTS = "shrink_inactive_list shrink_active_list shrink_folio_list shrink_page_list evict_folios isolate_lru_folios"
_LISTS += " isolate_lru_pages scan_folios isolate_folios"  # before 5.18, and MGLRU's
"""Below these pages are looked at; the rest is walking and waiting."""

_SHRINK = (
    "shrink_node shrink_node_memcgs shrink_many shrink_one lru_gen_shrink_node shrink_lruvec shrink_inactive_list"
    " shrink_active_list shrink_folio_list shrink_page_list evict_folios shrink_slab do_shrink_slab isolate_lru_folios"
    # Zones until 4.7 (b2e18757f2c9); MGLRU from 6.1 on.
    " shrink_zone shrink_zones isolate_lru_pages lru_gen_shrink_lruvec try_to_shrink_lruvec lru_gen_age_node"
    " kswapd_age_node try_to_inc_max_seq"
)
_ALLOCATES = (
    "__alloc_pages __alloc_pages_noprof __alloc_frozen_pages_noprof __alloc_pages_nodemask filemap_add_folio"
    " add_to_page_cache_lru do_anonymous_page page_cache_ra_unbounded page_cache_readahead_unbounded"
    " __do_page_cache_readahead do_huge_pmd_anonymous_page shmem_getpage_gfp shmem_get_folio_gfp"
)


def examine(case: Case) -> Evidence:
    by_kswapd, direct = case.count("vmstat", "pgscan_kswapd"), case.count("vmstat", "pgscan_direct")
    by_hand = case.count("vmstat", "pgscan_proactive")
    # A kernel that does not count reclaim on request by itself counts it as direct.
    scans = (by_kswapd, direct) if by_hand is None else (by_kswapd, direct, by_hand)
    nothing = all(scan is not None and scan.added == 0 for scan in scans)
    found = [
        _scanned(case, "pages scanned by kswapd", "pgscan_kswapd", by_kswapd, refutes_below=1e-9 if nothing else None),
        _scanned(case, "pages scanned by allocating tasks", "pgscan_direct", direct),
        *([] if by_hand is None else [_scanned(case, "pages scanned on request", "pgscan_proactive", by_hand)]),
        _work(case),
        *_easily_freed(case),
        counted("allocations that waited for reclaim", "allocstall", case.count("vmstat", "allocstall"), "counters"),
    ]
    available = case.peak("meminfo", "mem_available_bytes")
    if available is not None:
        found.append(measured(f"{available:,} bytes of memory were available", available, "bytes", "counters", None))
    culprit, is_turnover = _culprit(case), _is_turnover(case)
    says = "files are read through the page cache" if is_turnover else "the node is short of memory"
    return Evidence(
        tuple(found),
        culprit,
        f"{says}, and {case.hog.name} spends its time freeing some of it"
        + (f"; {culprit.subject} allocates most" if culprit and culprit.name != case.hog.name else ""),
        Fix(
            "limit what fills memory, and let kswapd begin sooner",
            (
                command("ps -eo pid,rss,comm --sort=-rss | head"),
                command("sysctl vm.min_free_kbytes", "1 to 3% of memory lets kswapd begin before tasks have to wait"),
                advice("set memory.high for the cgroups that read large files"),
            ),
        ),
        is_ordinary=is_turnover,
    )


def _scanned(
    case: Case, what: str, name: str, count: Count | None, *, refutes_below: float | None = None
) -> Measurement:
    """It is the node's memory, whoever of its tasks has to look for some."""
    usual, everybody = counter("vmstat", name), case.in_span
    return unusual(case, what, name, count, usual, f"{_WHOLE_NODE} user_proactive_reclaim", least=RECLAIM_SCANNED_PER_S,
                   refutes_below=refutes_below, whose=everybody)  # fmt: skip


def _is_turnover(case: Case) -> bool:
    """kswapd frees what it looks at, and nobody has to wait: files are read, and their pages take turns. Every node
    that reads more than it has memory for does that all day."""
    stalls, direct = case.count("vmstat", "allocstall"), case.count("vmstat", "pgscan_direct")
    freed = _freed(case)
    waits = [one for one in (stalls, direct) if one is None or one.rate >= RECLAIM_FEW_WAITS_PER_S]
    return freed is not None and freed >= RECLAIM_EASY_RATIO and not waits


def _freed(case: Case) -> float | None:
    """Of the pages that kswapd looked at."""
    looked, freed = case.count("vmstat", "pgscan_kswapd"), case.count("vmstat", "pgsteal_kswapd")
    return None if looked is None or freed is None or not looked.added else freed.added / looked.added


def _easily_freed(case: Case) -> list[Measurement]:
    freed = _freed(case)
    if freed is None:
        return []
    text = f"kswapd freed {freed * 100:.0f}% of the pages that it looked at"
    return [measured(text, round(freed, 4), "ratio", "counters", None)]


def _work(case: Case) -> Measurement:
    profile = case.node_profile
    if not case.sees(profile):
        return Measurement("scanning pages for the whole node was not sampled", None, "cores", "samples", "nothing")
    samples = profile.under(frozenset(_WHOLE_NODE.split()), frozenset(_LISTS.split()))
    cores = samples / case.facts.hz / case.seconds
    enough = True if cores >= RECLAIM_CORES else None
    return cpu_used("scanning pages for the whole node took {}", cores, enough)


def _culprit(case: Case) -> Actor | None:
    return case.caller(*_ALLOCATES.split()) or case.hog_program


PATTERN = Pattern(
    id="global-reclaim",
    title="The node reclaims memory",
    proof="kernel",
    seen_on=("6.1 (emulated)",),
    looks_like="kswapd, or the allocating tasks themselves (direct reclaim), scan page lists for pages to free.",
    confirmed_by="kswapd, allocating tasks or requests scan 25,000 pages per second (100 MB/s) more than usual; or "
    "page lists of the whole node use 0.3 of a CPU. Reported as a note (`info`) while kswapd frees 80% of "
    "the pages it scans and no task waits: then files are simply being read.",
    refuted_by="No page was scanned: then a cgroup is at its limit, or caches are being dropped on request.",
    remedy="Limit what fills memory; raise vm.min_free_kbytes so that kswapd begins before tasks have to wait.",
    stop_gap="set memory.high on the cgroup that fills memory, or pause it: it becomes slower, and the others keep "
    "running",
    examine=examine,
    numbers_tell=True,
    signatures=(
        signature("balance_pgdat kswapd", _SHRINK, means="kswapd frees memory"),
        signature(
            "try_to_free_pages __alloc_pages_direct_reclaim __perform_reclaim",
            _SHRINK,
            means="allocation waits for reclaim",
        ),
        signature(
            "user_proactive_reclaim reclaim_store __node_reclaim node_reclaim",
            _SHRINK,
            means="a node is reclaimed on request",
        ),
    ),
    scope="node",
    hog="kswapd, or the allocating tasks.",
    culprit="The process that allocates most in the same seconds, if that was sampled.",
    known_from="kernel documentation of vmstat; global reclaim alone counts pgscan_kswapd and pgscan_direct; on 6.1 in "
    "an emulated machine of 1.5 GB",
)
