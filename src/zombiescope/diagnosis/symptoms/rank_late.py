"""A rank of a distributed job holds the others up, or is somewhere else while they hang in a collective.

Who is late is told by where all ranks are at the same moments (query/late_ranks.py). What held it up is looked for
here, in what was recorded of that rank in that time: what its main thread waited for, a core, the quota or the memory
limit of its cgroup, the garbage collector, workers that were stopped, a disk or a server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from zombiescope.base.severity import Severity
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.input_workers import workers
from zombiescope.diagnosis.sample_grid import SampleGrid
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import (
    RANK_COLLECTS_SHARE,
    RANK_LATE_ALWAYS_RATIO,
    RANK_LATE_USUAL_SHARE,
    RANK_PAST_LEAST_S,
    RANK_PAST_US,
    RANK_RECLAIMS_SHARE,
)
from zombiescope.query import late_ranks
from zombiescope.query.jobs import steps
from zombiescope.query.late_ranks import AllWait, Late
from zombiescope.store.columns import Mask
from zombiescope.store.hangs import NEVER, thing

_COLLECTS = ("gc_collect_main", "_PyGC_Collect", "PyGC_Collect", "gc_collect_with_callback", "gc_collect_region",
             "deduce_unreachable", "visit_decref", "visit_reachable", "subtract_refs")  # fmt: skip
_RECLAIMS = ("try_charge_memcg", "try_charge", "mem_cgroup_handle_over_high", "try_to_free_mem_cgroup_pages",
             "mem_cgroup_oom_synchronize")  # fmt: skip
_SAYS = {
    "data": "it waited for its next batch", "stopped": "it was stopped", "storage": "it waited for storage",
    "core": "it had no core", "quota": "its CPU quota stopped it", "gc": "its garbage collector ran",
    "memory": "the kernel reclaimed memory for its limit", "host": "it computed on the host",
    "other": "it waited in its own code", "device": "it waited for its GPU", "unknown": "what it did is not known",
}  # fmt: skip


def find(facts: Facts) -> Iterator[Symptom]:
    if facts.imported:
        return
    made = facts.always(
        ("ranks", facts.start_us, facts.end_us),
        lambda: late_ranks.read(facts.recording, facts.start_us, facts.end_us),
    )
    told = steps(facts.recording, facts.start_us, facts.end_us) if made else []
    for grid in made:
        late = late_ranks.late(grid, told)
        for one in late:
            if not _is_ordinary(one) and not _is_usual(facts, one):
                yield _late(facts, one)
        for every in late_ranks.all_wait(grid):
            if not any(one.from_us < every.to_us and one.to_us > every.from_us for one in late):
                yield _all_wait(facts, every)


def _is_ordinary(one: Late) -> bool:
    """It starts, saves a checkpoint or evaluates while the others wait, as one rank of many jobs does."""
    return one.phase is not None


def _is_usual(facts: Facts, one: Late) -> bool:
    """It was as late in most of the minute before, and not by much: it does more than the others in each step."""
    if one.ratio >= RANK_LATE_ALWAYS_RATIO:
        return False
    past = facts.before(max(one.from_us, facts.start_us + 1), RANK_PAST_US)
    if past is None:
        return False
    for grid in late_ranks.read(past.recording, past.start_us, past.end_us, lambda job: job.id == one.job.id):
        shares = late_ranks.shares(grid)
        mine = next((row for row, rank in enumerate(grid.ranks) if rank.pid == one.rank.pid), None)
        if mine is not None and shares.shape[1] >= RANK_PAST_LEAST_S:
            as_late = shares[mine] >= RANK_LATE_USUAL_SHARE * one.ratio
            return bool(as_late.mean() >= RANK_LATE_USUAL_SHARE)
    return False


def _late(facts: Facts, one: Late) -> Symptom:
    cause, why = _cause(facts, one)
    whose = f"{one.rank.text} ({one.rank.comm or '?'}, pid {one.rank.pid}) of {one.job.id}"
    where = f" in {_inside(one.place, one.native if one.is_stuck else None)}" if one.place else ""
    if one.is_stuck:
        head = f"{whose} has been{where or ' elsewhere'} for {one.seconds:.0f} s"
    else:
        step = f" ({one.delay_s * 1e3:.0f} ms of each of {one.steps} steps)" if one.delay_s is not None else ""
        others = f"{one.others} ranks" if one.others > 1 else "1 rank"
        head = f"{whose} held {others} up for {one.late_s:.0f} of {one.seconds:.0f} s{step}{where}"
    wait_native = one.wait_native if one.is_stuck else None
    waits = f"; the others waited in {_inside(one.wait_place, wait_native)}" if one.wait_place else ""
    text = f"{head}: {why}{waits}"
    about: dict[str, Any] = {
        "job": one.job.id, "rank": one.rank.rank, "pid": one.rank.pid, "comm": one.rank.comm,
        "cause": cause, "why": why,
        "late_s": round(one.late_s, 1), "ratio": round(one.ratio, 4), "times": one.times, "others": one.others,
        "place": one.place, "native": one.native, "wait_place": one.wait_place, "wait_native": one.wait_native,
        "state": one.state, "steps": one.steps,
        "delay_s": None if one.delay_s is None else round(one.delay_s, 4), "is_stuck": one.is_stuck,
        "states": {name: round(value, 1) for name, value in one.states.items()},
    }  # fmt: skip
    span = max(one.from_us, facts.start_us), min(one.to_us, facts.end_us)
    severity: Severity = "critical" if one.is_stuck else "warning"
    group = f"{one.rank.text} of {one.job.id}"
    return Symptom(DETECTOR, *span, text, severity, group=group, facts=about, subject="nothing")


def _all_wait(facts: Facts, one: AllWait) -> Symptom:
    where = f" in {_inside(one.place, one.native)}" if one.place else ""
    head = f"all {one.ranks} ranks of {one.job.id} on this node have waited{where} for {one.seconds:.0f} s"
    if one.missing:
        why = f"the one that did not come is among its {one.missing} ranks on other nodes, or the network holds it up"
    else:
        why = "no rank is elsewhere: the network, or a collective that they do not all call alike"
    about: dict[str, Any] = {
        "job": one.job.id, "rank": None, "pid": None, "comm": None, "cause": "elsewhere" if one.missing else "network",
        "why": why, "late_s": round(one.seconds, 1), "ratio": 1.0, "times": 1, "others": one.ranks, "place": None,
        "native": None, "wait_place": one.place, "wait_native": one.native, "state": "collective", "steps": None,
        "delay_s": None, "is_stuck": True,
        "states": {}, "missing": one.missing,
    }  # fmt: skip
    span = max(one.from_us, facts.start_us), min(one.to_us, facts.end_us)
    text = f"{head}: {why}"
    return Symptom(DETECTOR, *span, text, group=f"job {one.job.id}", facts=about, subject="nothing")


def _inside(place: str, native: str | None) -> str:
    return place if native is None else f"{place}, in {native}"


# --- why -------------------------------------------------------------------------------------------------------------


def _cause(facts: Facts, one: Late) -> tuple[str, str]:
    """(short word, sentence)."""
    if one.state in ("stopped", "storage") and one.why:
        return one.state, one.why if one.state == "stopped" else f"it waited for {one.why}"
    grid = facts.samples_between(max(one.from_us, facts.start_us), min(one.to_us, facts.end_us))
    mine = _of(grid, one.rank.pid)
    many = int(np.count_nonzero(mine))
    if one.state in ("core", "host", "other", "storage") and many:
        collects = int(np.count_nonzero(mine & _with_user_function(grid, _COLLECTS)))
        if collects >= RANK_COLLECTS_SHARE * many:
            return "gc", f"{_SAYS['gc']} ({collects / many * 100:.0f}% of its samples)"
        reclaims = int(np.count_nonzero(mine & grid.with_function(*_RECLAIMS)))
        if reclaims >= RANK_RECLAIMS_SHARE * many:
            return "memory", f"{_SAYS['memory']} ({reclaims / many * 100:.0f}% of its samples)"
    waits = _waits_of_children(facts, one)
    if one.state in ("data", "other") and waits:
        return "storage", f"a process that feeds it waited for {waits}"
    if one.state in ("core", "host", "other", "data"):
        quota = _quota(facts, one)
        if quota:
            return "quota", quota
    if one.state == "core":
        hog = _on_its_core(grid, mine, one.rank.pid)
        return "core", f"it had no core: {hog}" if hog else _SAYS["core"]
    if one.state == "data":
        return "data", _data(facts, one)
    return one.state, _SAYS.get(one.state, _SAYS["unknown"])


def _of(grid: SampleGrid, pid: int) -> Mask:
    tasks = [task for task in np.unique(grid.task).tolist() if grid.task_of(task).pid == pid]
    found: Mask = np.isin(grid.task, tasks)
    return found


def _with_user_function(grid: SampleGrid, names: tuple[str, ...]) -> Mask:
    stacks = grid.stacks
    found: Mask = stacks.where(stacks.which(lambda function: function.name in names).tolist())[grid.stack]
    return found


def _waits_of_children(facts: Facts, one: Late) -> str | None:
    """What a process below the rank waited for in the kernel."""
    for task in facts.waiting:
        if task.kind in NEVER or task.since_us >= one.to_us or task.at_us <= one.from_us:
            continue
        if task.pid == one.rank.pid or _is_below(facts, task.pid, one.rank.pid):
            return thing(task.kind, task.resource)
    return None


def _is_below(facts: Facts, pid: int | None, parent: int) -> bool:
    tasks, ancestry = facts.samples.known.tasks, facts.samples.ancestry
    mine = (number for number, task in tasks.items() if task.pid == pid)
    return any(above.pid == parent for number in mine for above in ancestry.line(number))


def _quota(facts: Facts, one: Late) -> str | None:
    path = one.rank.cgroup
    for row in facts.cgroup_stats:
        stopped_us = row["throttled_us"] or 0
        near = one.from_us < row["time"] and row["time"] - 10_000_000 < one.to_us
        if near and stopped_us and row["cgroup"] and path and f"{path}/".startswith(f"{row['cgroup'].rstrip('/')}/"):
            return f"{_SAYS['quota']} for {stopped_us / 1e6:.1f} s ({row['cgroup']})"
    return None


def _on_its_core(grid: SampleGrid, mine: Mask, pid: int) -> str | None:
    """Who had most of the cores that it ran on."""
    cores = np.unique(grid.cpu[mine])
    others = np.isin(grid.cpu, cores) & ~grid.below({pid})
    hottest = grid.hottest_task(others)
    if hottest is None:
        return None
    task, many = hottest
    share = many / max(1, int(np.isin(grid.cpu, cores).sum()))
    return (
        f"{task.unit or task.comm or '?'} (pid {task.pid}) had {share * 100:.0f}% of {len(cores)} cores that it ran on"
    )


def _data(facts: Facts, one: Late) -> str:
    span = max(one.from_us, facts.start_us), min(one.to_us, facts.end_us)
    found = workers(facts, {one.rank.pid}, *span)
    if not found.many:
        return f"{_SAYS['data']}, and its workers used no CPU"
    which = "its worker" if found.many == 1 else f"its {found.many} workers"
    return f"{_SAYS['data']}: {which} used {found.ratio * 100:.0f}% of a core" + (" each" if found.many > 1 else "")


DETECTOR = Detector(
    kind="rank_late",
    title="a rank holds the others up",
    reported_when="all other ranks of a job on this node waited in a collective for one rank, for 12% of 6 s or more "
    "and three times as long as for any other, or once for 10 s; or all of them waited for 20 s in one place",
    find=find,
    source="python",
    role="victim",
    about="nothing",
    begins="moment",
    weight=4,
    bounds_case=True,
    has_hog=False,
    is_apart=True,
)
