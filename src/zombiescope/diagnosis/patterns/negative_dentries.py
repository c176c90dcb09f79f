"""Millions of names that do not exist are cached in one directory, and something walks them all under a lock."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Evidence, Measurement, Pattern, cpu_used, level, measured, signature
from zombiescope.diagnosis.thresholds import (
    CASE_PAST_US,
    DENTRIES_FEW,
    DENTRIES_MANY,
    DENTRIES_MANY_CGROUPS,
    DENTRIES_WALK_CORES,
)
from zombiescope.model.plans.step import Step, change, command, note

_WATCHED = "fsnotify_set_children_dentry_flags __fsnotify_update_child_dentry_flags fsnotify_update_flags"
_WALKS = (
    f"{_WATCHED} d_walk shrink_dcache_sb shrink_dcache_parent shrink_dentry_list dentry_lru_isolate prune_dcache_sb"
    " __dentry_kill"
    " dcache_readdir d_genocide shrink_dcache_for_umount simple_empty"
)


def examine(case: Case) -> Evidence:
    negative = case.peak("dentry", "negative", fresh=True)
    return Evidence(
        (
            level(
                "{} names that do not exist are cached (negative dentries)",
                negative,
                "dentries",
                "counters",
                refutes_below=DENTRIES_FEW,
            ),
            *_rose(case, negative),
            _walking(case, negative),
            *_all(case),
        ),
        case.answerable_hog,
        f"{case.hog.name} makes the kernel walk {'many' if negative is None else f'{negative:,}'} cached names that "
        "do not "
        "exist",
        Fix(
            "find who looks up names that do not exist, and drop the cached ones",
            tuple(_steps(case)),
        ),
    )


def _steps(case: Case) -> Iterator[Step]:
    yield command("cat /proc/sys/fs/dentry-state", "the fifth number")
    yield command("perf trace -e 'openat,newfstatat' --failure -a -- sleep 5", "who looks up what does not exist")
    memory, names = case.cgroups.memory, case.peak("dentry", "total")
    if memory is None or memory.total >= DENTRIES_MANY_CGROUPS:
        count = (
            "how many was not counted" if memory is None else f"{memory.total:,}, {memory.dying or 0:,} of them dying"
        )
        yield note(
            f"do not drop caches here: that walks every memory cgroup as well ({count}) and would hold a core itself"
        )
        return
    walked = "all cached names" if names is None else f"all {names:,} cached names"
    yield change(
        "echo 2 > /proc/sys/vm/drop_caches",
        "drop the cached names, once who makes them is stopped, from a core that serves no network queue",
        touches=f"{walked} and inodes of the node are dropped, and read from disk again when needed",
        undo="nothing to take back: the caches fill again by themselves",
        risk="it walks all of them, and holds the core that it runs on for as long",
        verify="cat /proc/sys/fs/dentry-state",
        part="stop-gap",
    )


def _rose(case: Case, negative: int | None) -> list[Measurement]:
    """A node with much memory may have millions of them at any time; those that were not there before are news."""
    before = case.facts.gauge("dentry", "negative", case.from_us - CASE_PAST_US)
    if negative is None or before is None:
        return []
    rose = negative - before
    text = f"{max(rose, 0):,} of them more than in the minute before"
    return [measured(text, rose, "dentries", "counters", True if rose >= DENTRIES_MANY else None)]


def _walking(case: Case, negative: int | None) -> Measurement:
    """Some functions do nothing but walk the cached names of one directory; the hog's own time in them is the proof."""
    cores = case.cores_in(*_WATCHED.split(), chosen=case.hog_samples)
    enough = cores is not None and cores >= DENTRIES_WALK_CORES and negative is not None and negative >= DENTRIES_MANY
    return cpu_used("walking the cached names of a watched directory took {}", cores, True if enough else None)


def _all(case: Case) -> list[Measurement]:
    total = case.peak("dentry", "total")
    return (
        [] if total is None else [measured(f"{total:,} names are cached in all", total, "dentries", "counters", None)]
    )


PATTERN = Pattern(
    id="negative-dentries",
    title="The kernel walks cached names of files that do not exist",
    proof="kernel",
    seen_on=("6.18",),
    looks_like="Setting or removing an inotify watch, or shrinking the cache, walks all cached names of a directory; "
    "failing lookups (temporary files, NSS, module searches) have filled it with millions of names that do not exist.",
    confirmed_by="200,000 more negative dentries than a minute before; or 200,000 in total, while the hog uses 0.3 of "
    "a CPU in functions that only walk the cached names of a watched directory.",
    refuted_by="Fewer than 50,000.",
    remedy="Stop the failing lookups, then drop the cache once.",
    stop_gap="stop the program that looks up names that do not exist; the kernel drops the names when it needs memory",
    examine=examine,
    signatures=(signature(_WALKS, means="all cached names of a directory are walked"),),
    culprit="The process that walks them; the samples no longer show which one created them.",
    known_from="linux-fsdevel on soft lockups in fsnotify; measured on 6.18 with a million",
)
