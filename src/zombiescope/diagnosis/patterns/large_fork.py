"""A process with a large heap forks: its page tables are copied, and both copy the pages that they write then.

A fork copies 8 bytes for each page of 4 kB that is in memory, one after the other: about 10 ms a gigabyte. That is not
a storm of processes, which are many and small, and it is not the job's own work with memory.
"""

from __future__ import annotations

import numpy as np

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.excess import baseline
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.memory_work import COPY
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_used, signature
from zombiescope.diagnosis.plan import shell
from zombiescope.diagnosis.thresholds import (
    FORK_MANY_TASKS,
    LARGE_FORK_CORES,
    LARGE_FORK_LEAST_US,
    LARGE_FORK_SHARE,
    LARGE_FORK_US,
)
from zombiescope.model.plans.step import advice, command

_COPIES = ("copy_page_range", "dup_mmap", "copy_p4d_range", "copy_pte_range", "anon_vma_fork")
_FORK = "kernel_clone _do_fork do_fork copy_process dup_mm sys_clone sys_clone3 sys_fork"


def examine(case: Case) -> Evidence:
    culprit = case.answerable_hog
    name = culprit.subject if culprit else "someone"
    look = shell("grep", "-E", "VmRSS|VmPTE", f"/proc/{case.hog.pid}/status") if case.hog.pid else "ps -eo rss,pid,args"
    return Evidence(
        (measurement(case),),
        culprit,
        f"{name} forks with a large heap: the kernel copies its page tables, and each page that it writes afterwards",
        Fix(
            f"let {name} start its children before its memory is filled, or without fork",
            (
                command(look, "how large it is, and its page tables"),
                advice("Python: multiprocessing with forkserver or spawn, from a small parent; subprocess uses vfork "
                       "from 3.10 on where close_fds and preexec_fn permit it"),
                advice("huge pages make the copy 500 times shorter: madvise, or transparent_hugepage=always for it"),
            ),
        ),
    )  # fmt: skip


def measurement(case: Case) -> Measurement:
    """How much of the copying lasts long in one piece: a small process is copied between two samples."""
    cores = case.cores_in(*_COPIES, chosen=case.hog_samples)
    share = long_share(case)
    text = f"copying page tables took {{}}, {share * 100:.0f}% of it in pieces of {LARGE_FORK_US / 1000:.0f} ms or more"
    enough = cores is not None and cores >= LARGE_FORK_CORES and not _are_many(case, cores)
    return cpu_used(text, cores, share >= LARGE_FORK_SHARE if enough else False)


def _are_many(case: Case, cores: float) -> bool:
    """More processes began than before, and each of these took little of the copying; or, where that was not counted,
    several fork."""
    made = case.count("stat", "processes")
    if made is None:
        return case.hog_pids >= FORK_MANY_TASKS
    usual = None if case.past is None else baseline(case.past.rates("stat", "processes"))
    more = made.rate - (0.0 if usual is None else usual.level)
    return more > 0 and cores / more * 1e6 < LARGE_FORK_LEAST_US


def is_one(case: Case) -> bool:
    return measurement(case).says == "confirms"


def long_share(case: Case) -> float:
    """The part of the samples of copying that lies in unbroken runs of one task of at least LARGE_FORK_US."""
    grid = case.facts.samples
    chosen = np.flatnonzero(case.below(*_COPIES) & case.hog_samples)
    if not len(chosen):
        return 0.0
    order = chosen[np.lexsort((grid.time_us[chosen], grid.task[chosen]))]
    time, task = grid.time_us[order], grid.task[order]
    breaks = np.flatnonzero((task[1:] != task[:-1]) | (time[1:] - time[:-1] > 2.5e6 / case.facts.hz))
    firsts, lasts = np.concatenate([[0], breaks + 1]), np.concatenate([breaks, [len(order) - 1]])
    long = time[lasts] - time[firsts] >= LARGE_FORK_US
    return float((lasts - firsts + 1)[long].sum() / len(order))


PATTERN = Pattern(
    id="large-fork",
    title="A process with a large heap forks",
    proof="literature",
    looks_like="A trainer or a data loader with gigabytes in memory forks: it copies page tables for 10 ms a gigabyte, "
    "and afterwards faults once for each page that it or its child writes (do_wp_page).",
    confirmed_by="0.1 of a CPU in copying page tables, most of it in pieces of 40 ms or more.",
    refuted_by="Less copying than that, or in shorter pieces: those are small processes.",
    remedy="Fork before memory is filled, or start helpers with spawn, forkserver or vfork.",
    stop_gap="fewer workers, and persistent ones: each one that is started costs a copy",
    examine=examine,
    signatures=(signature(_FORK, " ".join(_COPIES), means="page tables are copied for a child"),),
    also=COPY.functions,
    culprit="The process that forks.",
    known_from="mm/memory.c, copy_page_range; stacks seen on 6.18",
)
