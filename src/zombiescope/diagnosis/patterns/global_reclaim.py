"""The node is short of memory: kswapd, or every task that allocates, looks for pages to free."""

from __future__ import annotations

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.facts import Count
from zombiescope.diagnosis.incident import Actor, Fix, advice, command
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, counted, cpu_used, measured, signature

SCANNED_PER_S = 25_000
"""100 MB of pages looked at in a second; a node with free memory looks at none."""

RECLAIM_CORES = 0.3
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
        counted(
            "pages scanned by kswapd",
            "pgscan_kswapd",
            by_kswapd,
            "counters",
            confirms_from=SCANNED_PER_S,
            refutes_below=1e-9 if nothing else None,
        ),
        counted("pages scanned by allocating tasks", "pgscan_direct", direct, "counters", confirms_from=SCANNED_PER_S),
        *_on_request(by_hand),
        _work(case),
        counted("allocations that waited for reclaim", "allocstall", case.count("vmstat", "allocstall"), "counters"),
    ]
    available = case.peak("meminfo", "mem_available_bytes")
    if available is not None:
        found.append(measured(f"{available:,} bytes of memory were available", available, "bytes", "counters", None))
    culprit = _culprit(case)
    return Evidence(
        tuple(found),
        culprit,
        f"the node is short of memory, and {case.hog.name} spends its time freeing some"
        + (f"; {culprit.subject} allocates most" if culprit and culprit.name != case.hog.name else ""),
        Fix(
            "limit what fills memory, and let kswapd begin sooner",
            (
                command("ps -eo pid,rss,comm --sort=-rss | head"),
                command("sysctl vm.min_free_kbytes", "1 to 3% of memory lets kswapd begin before tasks have to wait"),
                advice("set memory.high for the cgroups that read large files"),
            ),
        ),
    )


def _on_request(count: Count | None) -> list[Measurement]:
    name = "pgscan_proactive"
    if count is None:
        return []
    return [counted("pages scanned on request", name, count, "counters", confirms_from=SCANNED_PER_S)]


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
    looks_like="kswapd, or the tasks that allocate (direct reclaim), scan page lists for pages that can be freed.",
    confirmed_by="25,000 or more pages scanned a second (100 MB/s), by kswapd, by allocating tasks or on request; or "
    "0.3 of a CPU spent on page lists for the whole node.",
    refuted_by="No page scanned: then what shrinks is a cgroup at its limit, or a cache that somebody drops.",
    remedy="Limit what fills memory; raise vm.min_free_kbytes so that kswapd begins before tasks have to wait.",
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
    culprit="Who allocates most in the same seconds, if that was sampled.",
    known_from="kernel documentation of vmstat; global reclaim alone counts pgscan_kswapd and pgscan_direct; on 6.1 in "
    "an emulated machine of 1.5 GB",
)
