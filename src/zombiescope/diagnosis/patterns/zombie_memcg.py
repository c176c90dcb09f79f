"""Zombie memory cgroups: removed, still counted, and walked by whoever reads statistics or reclaims memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from zombiescope.diagnosis import leak
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix
from zombiescope.diagnosis.leak import Culprit
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_used, measured, signature
from zombiescope.diagnosis.plan_container import stop_what, to_stop
from zombiescope.diagnosis.thresholds import (
    ZOMBIES_FILES_SHARE,
    ZOMBIES_MANY,
    ZOMBIES_PER_LIVE,
    ZOMBIES_PLACE_SHARE,
    ZOMBIES_WALK_CORES,
    ZOMBIES_WALK_SHARE,
)
from zombiescope.kernel.release import NUMA_STAT_WALKS_BEFORE
from zombiescope.model.plans.step import RELEASE, Act, Step, advice, command
from zombiescope.query import memcg_cost, memcg_walks

MOST_PLACES = 8

_WALK = "mem_cgroup_iter css_next_descendant_pre css_next_child css_rightmost_descendant"
_SUM = (
    "mem_cgroup_nr_lru_pages mem_cgroup_node_nr_lru_pages mem_cgroup_get_lru_size memcg_sum_events cpumask_next"
    " find_next_bit _find_next_bit tree_stat tree_events mem_cgroup_read_stat mem_cgroup_read_events"
    " accumulate_memcg_tree accumulate_vmstats"
)
"""One visit: tree_stat until 4.18, accumulate_memcg_tree until 5.1 (8de7ecc6483b), mem_cgroup_read_stat earlier."""

# These functions are in every kernel; whether they walk is what changed. So where the release says no, the walk itself
# is the proof.
NUMA_STAT = signature(
    "memcg_numa_stat_show", f"{_SUM} {_WALK}", before=(5, 8), proof=_WALK, means="memory.numa_stat is read"
)
STAT = signature(
    "memcg_stat_show", f"{_SUM} {_WALK} memcg_page_state", before=(5, 2), proof=_WALK, means="memory.stat is read"
)
STAT_V2 = signature(
    "memory_stat_show memory_stat_format", f"{_SUM} {_WALK} memcg_page_state", before=(5, 2), proof=_WALK,
    means="memory.stat of cgroup v2 is read",
)  # fmt: skip
# The root's usage is the sum over all cgroups until 42a300353577 keeps it: in 4.19.81 it walks, and was seen to.
USAGE = signature(
    "mem_cgroup_usage mem_cgroup_read_u64 mem_cgroup_read mem_cgroup_recursive_stat", _WALK, before=(5, 2), proof=_WALK,
    means="memory.usage_in_bytes of the root is read",
)  # fmt: skip
LIMIT = signature(
    "try_charge try_charge_memcg mem_cgroup_do_charge __mem_cgroup_try_charge mem_cgroup_handle_over_high"
    " __mem_cgroup_handle_over_high high_work_func",
    _WALK,
    means="a limited parent is full, and reclaim walks its children",
)
EMPTY = signature(
    "mem_cgroup_force_empty mem_cgroup_force_empty_write memory_reclaim memory_high_write memory_max_write"
    " mem_cgroup_resize_max mem_cgroup_resize_limit",
    _WALK,
    means="memory is reclaimed on request",
)
RECLAIM = signature(
    "shrink_node shrink_node_memcgs shrink_zone shrink_many do_try_to_free_pages try_to_free_mem_cgroup_pages"
    " balance_pgdat lru_gen_age_node kswapd_age_node lru_gen_shrink_node mem_cgroup_soft_limit_reclaim"
    " memcg1_soft_limit_reclaim",
    _WALK,
    means="reclaim walks them",
)
GENERATIONS = signature(
    memcg_walks.GENERATIONS, " ".join(sorted(memcg_walks.VISITS)), innermost=True,
    means="reclaim by generations walks them",
)  # fmt: skip
SLAB = signature(
    "drop_slab drop_slab_node drop_caches_sysctl_handler shrink_slab", _WALK, means="slab caches are dropped"
)


def examine(case: Case) -> Evidence:
    memory = case.cgroups.memory
    dying, live = (memory.dying, memory.live) if memory else (None, None)
    culprit = leak.attribute(case.facts, case.cgroups)
    return Evidence(
        tuple(_measurements(case, dying, live, culprit)),
        culprit.actor if culprit else None,
        _summary(case, dying, live, culprit),
        _fix(case, culprit.actor if culprit else None),
    )


def _measurements(case: Case, dying: int | None, live: int | None, culprit: Culprit | None) -> list[Measurement]:
    memory = case.cgroups.memory
    at_us = memory.at_us if memory else None
    found = []
    if memory is not None and dying is None:
        text = f"{memory.total:,} memory cgroups are tracked; how many are in use is not known"
        many = True if memory.total >= 10 * ZOMBIES_MANY else None
        found.append(measured(text, memory.total, "cgroups", "census", many, at_us=at_us, step="zombies"))
    else:
        says = _says(case, dying, live)
        found.append(measured(_counted(dying, live), dying, "cgroups", "census", says, at_us=at_us, step="zombies"))
        if dying is not None and memcg_cost.WALKED <= dying < ZOMBIES_MANY and says is not False:
            found.append(cpu_used("walking them took {}", _walk(case)[1], True))
    view = case.cgroups
    if view.growth_per_hour is not None:
        found.append(
            measured(f"{view.growth_per_hour:,.0f} more every hour", view.growth_per_hour, "cgroups/h", "census", None)
        )
    found += _cost(case)
    if culprit is not None:
        found += [Measurement(k.fact, k.value, k.unit, k.source, "nothing", step=k.step) for k in culprit.steps]
    if (pinned := _pinned(case)) is not None:
        text = f"what keeps them is {_bytes(pinned.shmem)} of tmpfs and {_bytes(pinned.file)} of page cache"
        found.append(measured(text, pinned.shmem + pinned.file, "bytes", "counters", None, step="kept by"))
    return found


def _says(case: Case, dying: int | None, live: int | None) -> bool | None:
    """Most of what is walked, and many; or fewer, where the walk itself is dear."""
    if dying is None:
        return None
    if live is not None and dying < ZOMBIES_PER_LIVE * live:
        return False
    share, cores = _walk(case)
    is_dear = share >= ZOMBIES_WALK_SHARE and cores >= ZOMBIES_WALK_CORES
    return True if dying >= ZOMBIES_MANY else None if is_dear else False


def _walk(case: Case) -> tuple[float, float]:
    """How much of the hog's kernel time the walk has, and of a CPU."""
    share, signature_ = PATTERN.share(case)
    return share, 0.0 if signature_ is None else PATTERN.cores(case, signature_)


def _cost(case: Case) -> list[Measurement]:
    """What a read costs now, when it will cost more, and whether this kernel makes it dear at all."""
    view = case.cgroups
    cost_s = view.forecast.read_cost_now_s
    if cost_s is None:
        return []
    if case.facts.kernel is not None and case.facts.kernel >= NUMA_STAT_WALKS_BEFORE:
        text = (
            f"reading statistics is cheap on this kernel (about {_seconds(cost_s)}), so it is reclaim that walks them"
        )
        return [measured(text, cost_s, "s", "counters", None, step="cost")]
    text = f"one read of the root's statistics costs about {_seconds(cost_s)} (estimated from what one cgroup costs)"
    at_us = view.memory.at_us if view.memory else case.facts.end_us
    coming = [
        f"{seconds} s from {_date(when)} on"
        for seconds, when in ((1, view.forecast.costs_1s_at_us), (5, view.forecast.costs_5s_at_us))
        if when is not None and when > at_us
    ]
    text += f"; at this growth about {' and '.join(coming)}" if coming else ""
    return [measured(text, cost_s, "s", "counters", None, step="cost")]


class _Pinned(NamedTuple):
    """Bytes that are charged to dying cgroups, below the parents that have most of them."""

    file: int
    shmem: int
    parents: tuple[str, ...] = ()
    living_file: int | None = None
    """Page cache of the other directories below those parents; None where it was not measured."""


def _pinned(case: Case) -> _Pinned | None:
    at_us = case.cgroups.memory.at_us if case.cgroups.memory else case.facts.end_us
    file, shmem, living = (case.facts.gauges("dying", name, at_us) for name in ("file", "shmem", "living_file"))
    if not file and not shmem:
        return None
    parents = sorted(file.keys() | shmem.keys(), key=lambda path: -(file.get(path, 0) + shmem.get(path, 0)))
    return _Pinned(sum(file.values()), sum(shmem.values()), tuple(parents), sum(living.values()) if living else None)


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.01 else f"{seconds * 1e6:.0f} µs"


def _bytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def _date(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _counted(dying: int | None, live: int | None) -> str:
    if dying is None:
        return "memory cgroups were not counted"
    if live is None:
        return f"{dying:,} memory cgroups are dead"
    return f"{dying:,} memory cgroups are dead, {live:,} in use"


def _summary(case: Case, dying: int | None, live: int | None, culprit: Culprit | None) -> str:
    zombies = f"{dying:,} dead memory cgroups" if dying is not None else "dead memory cgroups"
    whose = f" leaked by {culprit.actor.name}" if culprit and culprit.actor else ""
    text = f"{case.hog.subject} walks {zombies}{whose}"
    if live is not None:
        text += f" ({live:,} in use)"
    return f"{text}; {_unnamed(culprit)}" if whose == "" else text


def _unnamed(culprit: Culprit | None) -> str:
    if culprit is None:
        return "their creator was not recorded"
    return f"their creator cannot be named: {culprit.why_nobody}"


def _fix(case: Case, culprit: Actor | None) -> Fix:
    steps = [*stop_what(case.facts, culprit, "leaks memory cgroups")]
    steps.append(command("zombiescope cgroups", "check that the count stops growing"))
    act = Act(RELEASE, tuple((str(number), path) for number, path in enumerate(_places(case))))
    steps += [replace(step, act=act) if step.kind == "advice" else step for step in _release(_pinned(case))]
    if case.facts.kernel is not None and case.facts.kernel < NUMA_STAT_WALKS_BEFORE:
        steps.append(advice("a kernel from 5.8 on reads these statistics without walking (dd8657b6c1cb)"))
    return Fix(f"{to_stop(culprit) or 'find out who leaks them'}, then release the zombies", tuple(steps))


def _places(case: Case) -> list[str]:
    """Where the cgroups were that died: as the ledger saw it, and as the kernel counted it below directories. A place
    with few of them is nothing that the walk is long for."""
    memory = case.cgroups.memory
    least = max(memcg_cost.WALKED, ZOMBIES_PLACE_SHARE * (memory.dying or 0)) if memory else memcg_cost.WALKED
    at_us = memory.at_us if memory else case.facts.end_us
    seen = [line.path for line in case.cgroups.leaks if line.path and line.dying >= least]
    counted = case.facts.gauges("dying", "own", at_us)
    seen += [f"{parent.rstrip('/')}/*" for parent, dying in counted.items() if dying >= least]
    return list(dict.fromkeys(seen))[:MOST_PLACES]


def _release(pinned: _Pinned | None) -> Iterator[Step]:
    """By what keeps them, where that is clear; the two byte counts cross and cross again on a living node, so without a
    clear majority both ways are told. Reclaim cannot free tmpfs without swap: one write took seven seconds of a core
    for 20,000 of them, in vain."""
    both = 0 if pinned is None else pinned.file + pinned.shmem
    mostly_files = pinned is None or pinned.file >= ZOMBIES_FILES_SHARE * both
    mostly_tmpfs = pinned is not None and not mostly_files and pinned.shmem >= ZOMBIES_FILES_SHARE * both
    if pinned is not None and not mostly_files:
        beside = "reclaiming would burn a core without success" if mostly_tmpfs else "reclaiming frees the rest only"
        yield advice(
            f"release them: remove the tmpfs files that keep them ({_bytes(pinned.shmem)}); {beside}. Which files "
            "these are is not known: a database or Ray's object store may have some of them, so ask their owners"
        )
        yield command("df -t tmpfs", "which tmpfs holds that much")
    if not mostly_tmpfs:
        yield advice(
            "release them: memory.force_empty (v1) or memory.reclaim (v2) of the surviving parent"
            f"{_parents(pinned)}; this takes the page cache of everything else below it too{_cost_of_others(pinned)}"
        )


def _parents(pinned: _Pinned | None) -> str:
    return f" ({', '.join(pinned.parents[:3])})" if pinned is not None and pinned.parents else ""


def _cost_of_others(pinned: _Pinned | None) -> str:
    if pinned is None or pinned.living_file is None:
        return ", and how much that is was not measured"
    return f": {_bytes(pinned.living_file)}, which the living read from disk again"


PATTERN = Pattern(
    id="zombie-memcg",
    title="The kernel walks zombie memory cgroups",
    proof="kernel",
    seen_on=("6.18", "6.1 (emulated)", "4.19 (emulated)"),
    looks_like="A task that reads memory statistics or reclaims memory spends seconds in the kernel walking memory "
    "cgroups whose directory was removed.",
    confirmed_by="At least 1,000 memory cgroups are dying, and as many as are in use; or 100, if walking them takes "
    "30% of the hog's kernel time and 0.1 of a CPU.",
    refuted_by="Few memory cgroups are dying: then the walk is long because many are live (cgroup-litter) or because "
    "memory is short.",
    remedy="Stop the unit or container that leaks them, then release them by reclaiming from the parent that still "
    "exists.",
    stop_gap="move the process that walks them off the cores that serve the network card: the walk takes just as long, "
    "but no longer delays packets",
    examine=examine,
    numbers_tell=True,
    signatures=(NUMA_STAT, STAT, STAT_V2, USAGE, LIMIT, EMPTY, SLAB, RECLAIM, GENERATIONS),
    hog="The process that reads statistics, reclaims or drops caches: kubelet, cAdvisor, kswapd.",
    culprit="The unit or container that creates and removes the cgroups, usually one that crash-loops.",
    known_from="GitHub 2019, Pinterest 2026, cadvisor 1774 and 2259, dd8657b6c1cb, 42a300353577; measured on 6.18 with "
    "20,000, and file by file on 4.19.81 with 12,000",
)
