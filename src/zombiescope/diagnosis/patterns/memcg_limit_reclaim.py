"""A cgroup is at its memory limit: each allocation in it frees pages first, mostly its own page cache."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.leak import unit_of
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured, signature
from zombiescope.diagnosis.plan import cgroup_file
from zombiescope.diagnosis.thresholds import GAUGE_LATE_US, MEMCG_HITS_PER_S, MEMCG_RECLAIM_MANY_ZOMBIES
from zombiescope.model.plans.step import advice, command

_WALK = ("mem_cgroup_iter", "css_next_descendant_pre", "css_next_child", "css_rightmost_descendant")
_FREES = (
    "shrink_folio_list", "shrink_page_list", "evict_folios", "shrink_inactive_list", "shrink_active_list",
    "isolate_lru_folios", "isolate_lru_pages", "do_shrink_slab", "super_cache_count", "list_lru_count_one",
)  # fmt: skip


class _Limited(NamedTuple):
    cgroup: str
    hits: int
    seconds: float
    pressure_us: int | None


def examine(case: Case) -> Evidence:
    worst = _worst(case)
    culprit = _culprit(case, worst)
    known = worst.cgroup if worst is not None and worst.hits > 0 else case.hog.cgroup
    where = known or "a cgroup"
    return Evidence(
        (_hits(worst), *_walks_instead(case)),
        culprit,
        f"{where} is at its memory limit, and {case.hog.name} must free a page for each one it allocates",
        Fix(
            f"raise the memory limit of {where}, or read with less cache in it",
            (
                cgroup_file(case.cgroups, where, "memory.events", "memory/memory.failcnt", "how often it was hit")
                or command("zombiescope cgroups"),
                advice("raise the limit, or set memory.high below it so that reclaim comes in smaller steps"),
                advice("page cache counts too: read large files with O_DIRECT or posix_fadvise(POSIX_FADV_DONTNEED)"),
            ),
        ),
    )


def _worst(case: Case) -> _Limited | None:
    """The cgroup that hit its limit most often in the rows that touch the incident."""
    hits: dict[str, list[int]] = defaultdict(list)
    pressure: dict[str, list[int | None]] = defaultdict(list)
    for row in case.facts.cgroup_stats:
        known = [row[name] for name in ("memory_max_events", "memory_high_events") if row[name] is not None]
        if known and row["has_memory_limit"] != 0 and case.from_us <= row["time"] <= case.to_us + GAUGE_LATE_US:
            hits[row["cgroup"] or ""].append(max(known))
            pressure[row["cgroup"] or ""].append(row["memory_some_us"])
    if not hits:
        return None
    cgroup = max(hits, key=lambda name: sum(hits[name]))
    known = [us for us in pressure[cgroup] if us is not None]
    return _Limited(cgroup, sum(hits[cgroup]), 10.0 * len(hits[cgroup]), sum(known) if known else None)


def _hits(worst: _Limited | None) -> Measurement:
    if worst is None:
        return Measurement("how often a memory limit was hit was not counted", None, "hits", "cgroup_stats", "nothing")
    text = f"{worst.cgroup} hit its memory limit {worst.hits:,} times in {worst.seconds:.0f} s"
    confirms = True if worst.hits / worst.seconds >= MEMCG_HITS_PER_S else None
    if worst.hits == 0 and worst.pressure_us == 0:
        confirms = False  # not only its own limit: no cgroup above it made it wait either
    return measured(text, worst.hits, "hits", "cgroup_stats", confirms)


def _walks_instead(case: Case) -> list[Measurement]:
    """With thousands of zombies below the limit the time goes into visiting them, not into freeing pages."""
    memory = case.cgroups.memory
    if memory is None or memory.dying is None or memory.dying < MEMCG_RECLAIM_MANY_ZOMBIES:
        return []
    walks, frees = case.profile.own(*_WALK, "shrink_node", "shrink_lruvec"), case.profile.total(*_FREES)
    against = False if walks > frees and case.profile.own(*_WALK) > 0 else None
    share = case.profile.share(walks)
    text = (
        f"reclaim walks {memory.dying:,} dying cgroups: {share * 100:.0f}% of the kernel time against "
        f"{case.profile.share(frees) * 100:.0f}% that frees pages"
    )
    return [measured(text, round(share, 4), "ratio", "samples", against)]


def _culprit(case: Case, worst: _Limited | None) -> Actor | None:
    if worst is not None and worst.hits > 0:
        mine = case.hog.cgroup == worst.cgroup
        return case.answerable_hog if mine else case.blamed(Actor(unit=unit_of(worst.cgroup), cgroup=worst.cgroup))
    return case.answerable_hog


PATTERN = Pattern(
    id="memcg-limit-reclaim",
    title="A cgroup reclaims at its memory limit",
    proof="kernel",
    seen_on=("6.18", "6.1 (emulated)"),
    looks_like="Tasks of one container spend their time in try_charge and reclaim: the container is at its memory "
    "limit, and each new page first has to be freed from its own cache.",
    confirmed_by="The cgroup hit its limit 50 times per second or more (memory.events max or high; memory.failcnt on "
    "v1).",
    refuted_by="The limit was not hit and no task in the cgroup waited for memory; or reclaim walks thousands of dying "
    "cgroups instead of freeing pages, which is zombie-memcg.",
    remedy="Raise the limit, or let the job use less page cache.",
    stop_gap="raise the limit of the running cgroup (memory.max, or MemoryMax= by set-property --runtime), if the node "
    "has the memory",
    examine=examine,
    numbers_tell=True,
    signatures=(
        signature(
            "try_charge try_charge_memcg mem_cgroup_try_charge charge_memcg mem_cgroup_handle_over_high"
            # 3.10 charges in these; from 6.16 on the first is behind a static key; limits on the kernel's own memory.
            " __mem_cgroup_try_charge mem_cgroup_do_charge __mem_cgroup_handle_over_high high_work_func"
            " obj_cgroup_charge_pages __memcg_kmem_charge memcg_kmem_charge",
            "try_to_free_mem_cgroup_pages do_try_to_free_pages shrink_node shrink_slab mem_cgroup_reclaim shrink_zone",
            means="an allocation waits until its cgroup has freed pages",
        ),
    ),
    least_share=0.15,
    culprit="The cgroup at its limit.",
    known_from="concourse hush-house 22; measured on 6.18",
)
