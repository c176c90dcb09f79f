"""Cgroup statistics are flushed under one lock, and many cores wait for it."""

from __future__ import annotations

import numpy as np

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_below, measured, signature
from zombiescope.diagnosis.thresholds import RSTAT_CORE_SHARE, RSTAT_CORES
from zombiescope.model.plans.step import advice, command

_FLUSH = (
    "cgroup_rstat_flush cgroup_rstat_flush_locked cgroup_rstat_flush_irqsafe css_rstat_flush css_rstat_updated_list"
    " mem_cgroup_flush_stats mem_cgroup_css_rstat_flush __mem_cgroup_flush_stats do_flush_stats flush_memcg_stats_dwork"
    " mem_cgroup_flush_stats_ratelimited mem_cgroup_flush_stats_delayed mem_cgroup_flush_stats_atomic"
    " cgroup_rstat_flush_atomic cgroup_rstat_flush_hold cgroup_base_stat_flush"
)
"""In mainline memory statistics come this way from 5.13 on (2d146aa3aa84), the CPU's since 4.18; distributions carried
both back, so a function that was sampled needs no release to be believed."""
_SPIN = (
    "native_queued_spin_lock_slowpath __pv_queued_spin_lock_slowpath queued_spin_lock_slowpath __cgroup_rstat_lock"
    " __css_rstat_lock"
    " _raw_spin_lock_irq _raw_spin_lock_irqsave"
)


def examine(case: Case) -> Evidence:
    readers = case.caller(*_FLUSH.split())
    return Evidence(
        (_waiting(case), cpu_below(case, "flushing cgroup statistics", _FLUSH, confirms_from=1e9)),
        readers or case.answerable_hog,
        "cores wait for each other to read cgroup statistics"
        + (f"; {readers.name} reads them most" if readers else ""),
        Fix(
            "read cgroup statistics less often, and take a kernel that does not flush while another flush runs",
            (
                command("zombiescope stacks --top 20", "who calls mem_cgroup_flush_stats"),
                advice("lengthen the scrape interval of every agent that reads memory.stat"),
            ),
        ),
    )


def _waiting(case: Case) -> Measurement:
    """On how many cores somebody spins below a flush."""
    grid = case.facts.samples
    spinning = case.below(*_FLUSH.split()) & case.below(*_SPIN.split())
    if not len(grid) or (grid.cpu < 0).all() or not case.sees(case.node_profile):
        return Measurement("which cores waited for it is not known", None, "cores", "samples", "nothing")
    cpus, counts = np.unique(grid.cpu[spinning], return_counts=True)
    busy = int(np.count_nonzero(counts >= RSTAT_CORE_SHARE * grid.hz * case.seconds))
    text = f"{busy} cores spun for the lock of cgroup statistics"
    return measured(text, busy, "cores", "samples", True if busy >= RSTAT_CORES else False if not len(cpus) else None)


PATTERN = Pattern(
    id="rstat-lock",
    title="Many cores wait for the cgroup statistics lock",
    proof="literature",
    looks_like="kswapd threads and readers of memory.stat spin for the lock under which per-CPU cgroup statistics are "
    "added up (kernels from 5.13 on).",
    confirmed_by="Two or more cores spin below a flush of statistics.",
    refuted_by="No core spins there: then the flush itself is the work.",
    remedy="Read statistics less often, from fewer agents; newer kernels skip a flush while another one runs.",
    stop_gap="pause agents that read memory.stat, or lengthen their interval, while jobs run",
    examine=examine,
    signatures=(signature(_FLUSH, means="cgroup statistics are flushed"),),
    scope="node",
    culprit="The process that reads the statistics most, unless it is a kernel thread.",
    known_from="Jesper Dangaard Brouer, 2024, on kswapd and cgroup rstat",
)
