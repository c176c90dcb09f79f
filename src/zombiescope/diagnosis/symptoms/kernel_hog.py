"""A task, or a group of tasks, that spent 0.9 of a CPU or more inside the kernel for a second, on whatever cores.

Hogs migrate, so no single core need be saturated; and storms are made of processes that live for a millisecond, so the
samples are added up by thread, by name, by unit or cgroup, and by parent. A group is reported only when no smaller one
explains it, and only when most of its own time is the kernel's: sixty training processes with a little kernel time
each are no hog.

Work that one task starts and others do (a caller makes network namespaces, kworkers tear them down) fills cores without
a hog among the tasks: measured, 0.8 and 0.6 of a CPU. So the last group is everybody, reported when there is no other
and when it is a good part of the node: on a large one the kernel always has a core's worth to do.

Nearly half a CPU in the kernel for five seconds is a *moderate* hog: a shell that starts processes, an agent in Python
that reads a thousand files of cgroups. So is every busy web server. It is looked for where there is no other, and is
reported only when a pattern is confirmed that explains it (diagnose.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.sample_grid import BIN_US, SECOND_BINS, SampleGrid, moving_sum
from zombiescope.diagnosis.sample_index import SampledTask
from zombiescope.diagnosis.spans import runs
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.recording.columns import Ints
from zombiescope.recording.container_names import SHORT_ID
from zombiescope.recording.thresholds import HOG_RATIO, MODERATE_OF_ALL, MODERATE_RATIO, MOSTLY_KERNEL, NODE_RATIO

GROUP_RATIO = 0.02
"""Of all cores: on a large node many tasks of one name together are in the kernel for a core's worth at any time."""
MODERATE_BINS = 5 * SECOND_BINS
EXPLAINED = 0.8
"""A smaller group that has this much of a larger one's kernel time explains it."""

EVERYBODY = "everybody"
MIGRATING = "migrating-kernel-hog"
LEVELS: tuple[tuple[str, Callable[[SampledTask], str | None]], ...] = (
    ("thread", lambda task: None if not task.tid else f"tid {task.tid}"),
    ("comm", lambda task: None if not task.tid else task.comm),
    ("owner", lambda task: task.unit or task.container or (task.cgroup if task.cgroup != "/" else None)),
    ("parent", lambda task: None if not task.ppid or task.ppid <= 2 else f"children of {task.ppid}"),
    (EVERYBODY, lambda _: EVERYBODY),
)
OF_ALL_CORES = {"thread": 0.0, EVERYBODY: NODE_RATIO}


class _Hog(NamedTuple):
    level: str
    name: str
    first: int
    last: int
    samples: int
    ratio: float
    peak: float
    task: SampledTask
    cpus: tuple[int, ...]
    tasks: int
    pids: int
    moderate: bool = False


class _Grouped(NamedTuple):
    """All samples by one level: the group of each, and [group, quarter of a second] counts."""

    level: str
    names: list[str]
    group: Ints
    kernel: Ints
    everything: Ints


def find(facts: Facts) -> Iterator[Symptom]:
    grid = facts.samples
    full: list[_Hog] = []
    moderate: list[_Hog] = []
    for level, key in LEVELS:  # one at a time: on a large node each takes a hundred megabytes
        grouped = _grouped(grid, level, key)
        _add(facts, full, grouped, HOG_RATIO, SECOND_BINS)
        _add(facts, moderate, grouped, max(MODERATE_RATIO, MODERATE_OF_ALL * facts.cpus), MODERATE_BINS)
    for hog in full:
        yield _symptom(grid, hog)
    for hog in moderate:
        if not any(_is_part_of(hog, other) for other in full):
            yield _symptom(grid, hog._replace(moderate=True))


def _grouped(grid: SampleGrid, level: str, key: Callable[[SampledTask], str | None]) -> _Grouped:
    group, names = grid.groups(key)
    kernel = grid.per_bin(group, len(names), grid.in_kernel)
    return _Grouped(level, names, group, kernel, grid.per_bin(group, len(names), np.ones(len(grid), bool)))


def _add(facts: Facts, found: list[_Hog], grouped: _Grouped, least: float, bins: int) -> None:
    """Hogs that were in the kernel on so many cores for so long, without groups that a smaller one explains."""
    enough = max(least, OF_ALL_CORES.get(grouped.level, GROUP_RATIO) * facts.cpus)
    for hog in _hogs(facts.samples, grouped, enough, bins):
        if not any(_explains(smaller, hog) for smaller in found):
            found.append(hog)


def _hogs(grid: SampleGrid, grouped: _Grouped, least: float, bins: int) -> Iterator[_Hog]:
    level, names, group, kernel, everything = grouped
    if not names:
        return
    in_a_window = moving_sum(kernel, bins)
    enough = least * grid.hz * bins / SECOND_BINS
    for number in np.flatnonzero((in_a_window >= enough).any(axis=1)).tolist():
        for first, last in runs(in_a_window[number] >= enough, bridge=SECOND_BINS):
            first, end = _trimmed(kernel[number], first, last + bins - 1, enough / bins / 2)
            samples = int(kernel[number, first:end].sum())
            if samples < MOSTLY_KERNEL * everything[number, first:end].sum():
                continue
            span = grid.where(grid.start_us + first * BIN_US, grid.start_us + end * BIN_US)
            chosen = span & (group == number) & grid.in_kernel
            hottest = grid.hottest_task(chosen)
            if hottest is None:
                continue
            cpus = tuple(int(cpu) for cpu in np.unique(grid.cpu[chosen]) if cpu >= 0)
            ratio = samples / grid.hz / ((end - first) * BIN_US / 1e6)
            peak = float(in_a_window[number, max(0, first - bins) : last].max()) * least / enough
            tasks = [grid.task_of(task) for task in np.unique(grid.task[chosen]).tolist()]
            pids = len({task.pid for task in tasks})
            yield _Hog(level, names[number], first, end, samples, ratio, peak, hottest[0], cpus, len(tasks), pids)


def _trimmed(kernel: Ints, first: int, last: int, least: float) -> tuple[int, int]:
    """Without the quarters at both ends in which it was not yet, or no longer, hot: the moving second took them in."""
    hot = np.flatnonzero(kernel[first:last] >= least)
    return (first + int(hot[0]), first + int(hot[-1]) + 1) if len(hot) else (first, last)


def _explains(smaller: _Hog, larger: _Hog) -> bool:
    """It is one of the larger group, and has most of its samples; another task that is as busy explains nothing."""
    mostly = larger.level == EVERYBODY or smaller.samples >= EXPLAINED * larger.samples
    return mostly and _overlap(smaller, larger) and dict(LEVELS)[larger.level](smaller.task) == larger.name


def _is_part_of(moderate: _Hog, other: _Hog) -> bool:
    """It is the same task, or another was at work most of the time; a second of somebody else is no reason."""
    together = min(moderate.last, other.last) - max(moderate.first, other.first)
    same = moderate.task.comm == other.task.comm
    return together > (0 if same else (moderate.last - moderate.first) / 2)


def _overlap(one: _Hog, other: _Hog) -> bool:
    return min(one.last, other.last) > max(one.first, other.first)


def _name(grid: SampleGrid, hog: _Hog) -> str:
    """One task by its name, several as what they are."""
    who = hog.task.comm or hog.name
    if hog.level == "parent":
        parent = grid.ancestry.parent_of(hog.task)
        return f"the children of {'a process that was not sampled' if parent is None else parent.comm}"
    if hog.level == EVERYBODY:
        return f"{who} and others together"
    if hog.tasks == 1 or hog.level == "thread":  # a thread that was renamed is several tasks, and one thread
        return who
    if hog.level == "comm":
        return f"{hog.tasks} threads of {hog.name}" if hog.pids == 1 else f"{hog.tasks} tasks named {hog.name}"
    return f"the tasks of {_owner(hog)}"


def _owner(hog: _Hog) -> str:
    """A container and its scope go by the container's name; a unit or a cgroup by its own."""
    is_container = hog.task.container is not None and hog.task.container[:SHORT_ID] in hog.name
    return (hog.task.named.label if is_container else None) or hog.name


def _symptom(grid: SampleGrid, hog: _Hog) -> Symptom:
    seconds = (hog.last - hog.first) * BIN_US / 1e6
    where = f"core {hog.cpus[0]}" if len(hog.cpus) == 1 else f"{len(hog.cpus)} cores"
    return Symptom(
        DETECTOR,
        grid.start_us + hog.first * BIN_US,
        grid.start_us + hog.last * BIN_US,
        f"{_name(grid, hog)} used {hog.ratio:.2f} cores in the kernel for {seconds:.1f} s, on {where}",
        "info",
        hog.cpus[0] if len(hog.cpus) == 1 else None,
        hog.name,
        {
            "level": hog.level,
            "ratio": hog.ratio,
            "peak": hog.peak,
            "pid": hog.task.pid,
            "tid": hog.task.tid,
            "comm": hog.task.comm or hog.name,
            "moderate": hog.moderate,
            "who": _name(grid, hog),
            "many": hog.tasks > 1 and hog.level != "thread",
        },
        finding="kernel-crowd" if hog.level != "thread" else "kernel-hog" if len(hog.cpus) == 1 else MIGRATING,
    )


DETECTOR = Detector(
    kind="kernel_hog",
    title="one task in the kernel",
    reported_when="a thread, a program, a unit or the children of one parent spent 0.9 of a CPU in the kernel for a "
    "second, on whatever cores; or nobody alone did, and all together filled a quarter of the node with the kernel's "
    "work. 0.4 of a CPU for five seconds (and a twentieth of the node) is reported, as `info`, only where a pattern is "
    "confirmed that explains it: every busy web server has that much",
    find=find,
    source="samples",
    role="hog",
    begins="onset",
    joins="migrating",
    weight=1,
    bounds_case=True,
    names_hog=True,
)
