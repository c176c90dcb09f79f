"""Zombie memory cgroups: removed, still counted, and walked by whoever reads statistics or reclaims memory."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from zombiescope.diagnosis import leak
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix, FixStep, advice, command
from zombiescope.diagnosis.leak import Culprit
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, measured, signature
from zombiescope.kernel.release import NUMA_STAT_WALKS_BEFORE

MANY = 1_000
MANY_PER_LIVE = 1
"""Fewer than are in use are not most of the walk."""

_WALK = "mem_cgroup_iter css_next_descendant_pre css_next_child css_rightmost_descendant"
_SUM = "mem_cgroup_nr_lru_pages mem_cgroup_node_nr_lru_pages memcg_sum_events cpumask_next find_next_bit _find_next_bit"

NUMA_STAT = signature("memcg_numa_stat_show", f"{_SUM} {_WALK}", before=(5, 8), means="memory.numa_stat is read")
STAT = signature("memcg_stat_show", f"{_SUM} {_WALK} memcg_page_state", before=(5, 2), means="memory.stat is read")
USAGE = signature(
    "mem_cgroup_usage mem_cgroup_read_u64", _WALK, before=(4, 19), means="memory.usage_in_bytes of the root is read"
)
LIMIT = signature(
    "try_charge try_charge_memcg", _WALK, means="a limited parent is full, and reclaim walks its children"
)
EMPTY = signature(
    "mem_cgroup_force_empty mem_cgroup_force_empty_write memory_reclaim", _WALK, means="memory is reclaimed on request"
)
RECLAIM = signature(
    "shrink_node shrink_node_memcgs shrink_many do_try_to_free_pages try_to_free_mem_cgroup_pages balance_pgdat", _WALK,
    means="reclaim walks them",
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
    many = None if dying is None else dying >= MANY and (live is None or dying >= MANY_PER_LIVE * live)
    found = []
    if memory is not None and dying is None:
        found.append(
            measured(f"{memory.total:,} memory cgroups are tracked; how many are in use is not known", memory.total,
                     "cgroups", "census", True if memory.total >= 10 * MANY else None, at_us=at_us, step="zombies")
        )  # fmt: skip
    else:
        found.append(measured(_counted(dying, live), dying, "cgroups", "census", many, at_us=at_us, step="zombies"))
    view = case.cgroups
    if view.growth_per_hour is not None:
        found.append(
            measured(f"{view.growth_per_hour:,.0f} more every hour", view.growth_per_hour, "cgroups/h", "census", None)
        )
    found += _cost(case)
    if culprit is not None:
        found.append(measured(culprit.how, culprit.value, culprit.unit, culprit.source, None, step="leak"))
    if (pinned := _pinned(case)) is not None:
        text = f"what keeps them is {_bytes(pinned.shmem)} of tmpfs and {_bytes(pinned.file)} of page cache"
        found.append(measured(text, pinned.shmem + pinned.file, "bytes", "counters", None, step="kept by"))
    return found


def _cost(case: Case) -> list[Measurement]:
    """What a read costs now, when it will cost more, and whether this kernel makes it dear at all."""
    view = case.cgroups
    cost_s = view.forecast.read_cost_now_s
    if cost_s is None:
        return []
    if case.facts.kernel is not None and case.facts.kernel >= NUMA_STAT_WALKS_BEFORE:
        text = f"reading statistics is cheap on this kernel ({_seconds(cost_s)}), so it is reclaim that walks them"
        return [measured(text, cost_s, "s", "counters", None, step="cost")]
    text = f"one read of the root's statistics costs {_seconds(cost_s)}"
    at_us = view.memory.at_us if view.memory else case.facts.end_us
    coming = [
        f"{seconds} s from {_date(when)} on"
        for seconds, when in ((1, view.forecast.costs_1s_at_us), (5, view.forecast.costs_5s_at_us))
        if when is not None and when > at_us
    ]
    text += f"; at this growth {' and '.join(coming)}" if coming else ""
    return [measured(text, cost_s, "s", "counters", None, step="cost")]


class _Pinned(NamedTuple):
    """Bytes that are charged to dying cgroups, below the parents that have most of them."""

    file: int
    shmem: int


def _pinned(case: Case) -> _Pinned | None:
    at_us = case.cgroups.memory.at_us if case.cgroups.memory else case.facts.end_us
    file, shmem = (case.facts.gauges("dying", name, at_us) for name in ("file", "shmem"))
    return _Pinned(sum(file.values()), sum(shmem.values())) if file or shmem else None


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
        return f"{dying:,} memory cgroups are dying"
    return f"{dying:,} memory cgroups are dying, {live:,} are in use"


def _summary(case: Case, dying: int | None, live: int | None, culprit: Culprit | None) -> str:
    zombies = f"{dying:,} removed memory cgroups" if dying is not None else "removed memory cgroups"
    whose = f" that {culprit.actor.name} leaks" if culprit else ""
    text = f"{case.hog.name} makes the kernel walk {zombies}{whose}"
    if live is not None:
        text += f" (only {live:,} are in use)"
    return text if culprit else f"{text}; who leaks them was not seen"


def _fix(case: Case, culprit: Actor | None) -> Fix:
    steps: list[FixStep] = []
    if culprit is not None and culprit.unit is not None and culprit.unit.endswith(".service"):
        steps.append(command(f"systemctl disable --now {culprit.unit}"))
    elif culprit is not None:
        steps.append(advice(f"stop what makes and removes cgroups under {culprit.cgroup}"))
    steps.append(command("zombiescope cgroups", "do they still grow?"))
    steps.append(_release(_pinned(case)))
    if case.facts.kernel is not None and case.facts.kernel < (5, 8):
        steps.append(advice("a kernel from 5.8 on reads these statistics without walking (dd8657b6c1cb)"))
    who = culprit.name if culprit else "whatever leaks them"
    return Fix(f"stop {who}, then release the zombies", tuple(steps))


def _release(pinned: _Pinned | None) -> FixStep:
    """Reclaim cannot free tmpfs without swap: one write took seven seconds of a core for 20,000 of them, in vain."""
    if pinned is not None and pinned.shmem > pinned.file:
        return advice(
            "release them: remove the tmpfs files that keep them (/dev/shm); reclaiming would burn a core in vain"
        )
    return advice("release them: memory.force_empty (v1) or memory.reclaim (v2) of the surviving parent")


PATTERN = Pattern(
    id="zombie-memcg",
    title="Zombie memory cgroups are walked",
    proof="kernel",
    looks_like="A task that reads memory statistics or reclaims memory spends seconds in the kernel walking memory "
    "cgroups that have no directory any more.",
    confirmed_by="At least 1,000 dying memory cgroups, and as many as there are in use.",
    refuted_by="Few dying memory cgroups: then the walk is long because live ones are many (cgroup-litter) or because "
    "memory is short.",
    remedy="Stop what leaks them, then release them by reclaiming from the parent that is still there.",
    examine=examine,
    signatures=(NUMA_STAT, STAT, USAGE, LIMIT, EMPTY, SLAB, RECLAIM),
    hog="Who reads statistics, reclaims or drops caches: kubelet, cAdvisor, kswapd.",
    culprit="Who makes and removes the cgroups: a unit or container that restarts for ever.",
    known_from="GitHub 2019, Pinterest 2026, cadvisor 1774 and 2259, dd8657b6c1cb; measured on 6.18 with 20,000",
)
