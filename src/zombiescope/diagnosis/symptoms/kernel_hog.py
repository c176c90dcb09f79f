"""A task, or a group of tasks, that spent 0.9 of a CPU or more inside the kernel for a second, on whatever cores.

Hogs migrate, so no single core need be saturated; and storms are made of processes that live for a millisecond, so the
samples are added up by thread, by name, by kind of kernel thread, by unit or cgroup, and by parent (task_groups.py). A
group is reported only when no smaller one explains it, and only when most of its own time is the kernel's: sixty
training processes with a little kernel time each are no hog.

How much is enough does not depend on the size of the node: a storm is as loud on 192 cores as on two. On a large node
more programs do as much and always have; those are told by what they used before (usual.py), and are background.

Work that one task starts and others do (a caller makes network namespaces, kworkers tear them down) fills cores without
a hog among the tasks: measured, 0.8 and 0.6 of a CPU. So the last group is everybody who is mostly in the kernel and
has more of it than before, reported when there is no other.

Nearly half a CPU in the kernel for five seconds is a *moderate* hog: a shell that starts processes, an agent in Python
that reads a thousand files of cgroups. So is every busy web server, and so is background, and so are tasks that have
nothing but a name in common, each with little and on other cores (scatter.py). It is looked for where there is no
other, and is reported only when a pattern is confirmed that explains it, or when it is new (diagnose.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.sample_grid import BIN_US, SECOND_BINS, SampleGrid, moving_sum
from zombiescope.diagnosis.sample_index import SampledTask
from zombiescope.diagnosis.scatter import is_scattered
from zombiescope.diagnosis.spans import runs
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.task_groups import (
    COMM,
    EVERYBODY,
    KERNEL_THREADS,
    KEYS,
    LEVELS,
    OWNER,
    PARENT,
    THREAD,
    Key,
    kind,
)
from zombiescope.diagnosis.thresholds import (
    HOG_CHANCE_DEVIATIONS,
    HOG_GROWN_RATIO,
    HOG_HALF_RATIO,
    HOG_KIND_GROWN_CORES,
    HOG_NEW_RATIO,
    HOG_QUIET_S,
    HOG_SMALLER_GROUP_SHARE,
    HOG_USUAL_SHOWN_CORES,
    MODERATE_HOG_S,
)
from zombiescope.diagnosis.usual import Usual
from zombiescope.store.columns import Ints, Mask
from zombiescope.store.container_names import SHORT_ID
from zombiescope.store.thresholds import HOG_RATIO, MODERATE_RATIO, MOSTLY_KERNEL

MOST_NEW = 3
MOST_MODERATE = 12
"""Each is examined by every pattern; a large node has hundreds of programs with half a CPU in the kernel."""

MIGRATING = "migrating-kernel-hog"


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
    usual: float | None = None
    new: bool | None = None
    """Whether it has more than before; None: nobody knows what was before."""
    kinds: tuple[str, ...] = ()
    onset: int = 0
    """When it began to use half of what makes a hog: a shell loop at 0.8 of a CPU has 0.9 now and then."""
    home: frozenset[int] = frozenset()
    """Cores on which a quarter of it was; none where it is spread over many."""
    scattered: bool = False


class _Grouped(NamedTuple):
    """All samples by one level: [group, quarter of a second] counts, and which samples of the kernel are of each group:
    those of one stand together in the order of time, so that a hog costs its own samples and not everybody's."""

    level: str
    names: list[str]
    kernel: Ints
    everything: Ints
    samples: Ints
    first: Ints
    """Where those of each group begin, and where the last one's end."""

    def of(self, grid: SampleGrid, number: int, first_bin: int, end_bin: int) -> Ints:
        """The samples of a group in these quarters of a second."""
        mine = self.samples[self.first[number] : self.first[number + 1]]
        span_us = (grid.start_us + first_bin * BIN_US, grid.start_us + end_bin * BIN_US)
        begin, end = np.searchsorted(grid.time_us[mine], span_us)
        chosen: Ints = mine[begin:end]
        return chosen


def find(facts: Facts) -> Iterator[Symptom]:
    grid, usual = facts.samples, Usual(facts)
    full: list[_Hog] = []
    moderate: list[_Hog] = []
    for level, key in LEVELS:  # one at a time: on a large node each takes a hundred megabytes
        grouped = _grouped(grid, level, key)
        _add(grid, full, grouped, HOG_RATIO, SECOND_BINS)
        _add(grid, moderate, grouped, MODERATE_RATIO, MODERATE_HOG_S * SECOND_BINS)
    full = [hog for hog in (_judged(usual, grid, hog, HOG_RATIO) for hog in full) if hog.new is not False]
    scattered = [hog for hog in full if hog.scattered]
    full = [hog for hog in full if not hog.scattered]
    full += _everybody(facts, usual, [*full, *scattered])
    yield from (_symptom(grid, hog) for hog in full)
    rest = [hog for hog in moderate if not any(_is_part_of(hog, other) for other in (*full, *scattered))]
    rest += [hog for hog in scattered if not any(_is_part_of(hog, other) for other in full)]
    judged = [_judged(usual, grid, hog, MODERATE_RATIO) for hog in sorted(rest, key=lambda one: -one.samples)]
    for hog in sorted(judged, key=lambda one: one.new is not True)[:MOST_MODERATE]:
        yield _symptom(grid, hog._replace(moderate=True), worth_a_word=_is_news(hog, judged))


def _judged(usual: Usual, grid: SampleGrid, hog: _Hog, least: float) -> _Hog:
    before = usual.cores(hog.level, hog.name, hog.task, grid.start_us + hog.onset * BIN_US)
    new = None if before is None else hog.ratio - before >= HOG_GROWN_RATIO * max(least, before)
    return hog._replace(usual=before, new=new)


def _is_news(hog: _Hog, judged: list[_Hog]) -> bool:
    """The few largest of those that began in the time that is known."""
    new = [one for one in judged if one.new and one.ratio >= HOG_NEW_RATIO]
    return hog in sorted(new, key=lambda one: -one.samples)[:MOST_NEW]


def _grouped(grid: SampleGrid, level: str, key: Key) -> _Grouped:
    group, names = grid.groups(key)
    kernel = grid.per_bin(group, len(names), grid.in_kernel)
    everything = grid.per_bin(group, len(names), np.ones(len(grid), bool))
    inside = np.flatnonzero(grid.in_kernel & (group >= 0))
    inside = inside[np.argsort(group[inside], kind="stable")]
    return _Grouped(level, names, kernel, everything, inside, np.searchsorted(group[inside], np.arange(len(names) + 1)))


def _add(grid: SampleGrid, found: list[_Hog], grouped: _Grouped, least: float, bins: int) -> None:
    """Hogs that were in the kernel on so many cores for so long, without groups that a smaller one explains."""
    for hog in _hogs(grid, grouped, least, bins):
        if not any(_explains(smaller, hog) for smaller in found):
            found.append(hog)


def _hogs(grid: SampleGrid, grouped: _Grouped, least: float, bins: int) -> Iterator[_Hog]:
    names, kernel, everything = grouped.names, grouped.kernel, grouped.everything
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
            peak = float(in_a_window[number, max(0, first - bins) : last].max()) * least / enough
            mine = grouped.of(grid, number, first, end)
            hog = _hog(grid, (grouped.level, names[number]), (first, end), mine, peak)
            if hog is not None:
                yield hog._replace(onset=_onset(kernel[number], first, least * grid.hz))


def _hog(grid: SampleGrid, whose: tuple[str, str], bins: tuple[int, int], chosen: Ints, peak: float) -> _Hog | None:
    """Of these samples, all of which are the kernel's."""
    first, end = bins
    hottest = grid.hottest_task(chosen)
    if hottest is None:
        return None
    samples, seconds = len(chosen), (end - first) * BIN_US / 1e6
    ratio = samples / grid.hz / seconds
    cpus, on = np.unique(grid.cpu[chosen], return_counts=True)
    home = frozenset(cpus[4 * on >= samples].tolist())
    cores = tuple(int(cpu) for cpu in cpus if cpu >= 0)
    tasks = [grid.task_of(task) for task in np.unique(grid.task[chosen]).tolist()]
    pids = len({task.pid for task in tasks})
    scattered = whose[0] in (COMM, OWNER) and is_scattered(grid, chosen, seconds)
    return _Hog(
        *whose, first, end, samples, ratio, peak, hottest[0], cores, len(tasks), pids, home=home, scattered=scattered
    )


def _trimmed(kernel: Ints, first: int, last: int, least: float) -> tuple[int, int]:
    """Without the quarters at both ends in which it was not yet, or no longer, hot: the moving second took them in."""
    hot = np.flatnonzero(kernel[first:last] >= least)
    return (first + int(hot[0]), first + int(hot[-1]) + 1) if len(hot) else (first, last)


def _onset(kernel: Ints, first: int, least: float) -> int:
    """The first quarter of the run, with pauses of two seconds at most, in which it had half as much."""
    half = moving_sum(kernel[None], SECOND_BINS)[0] >= HOG_HALF_RATIO * least
    began = [start for start, end in runs(half, bridge=2 * SECOND_BINS) if start <= first < end + SECOND_BINS]
    return min([first, *began])


# --- everybody -------------------------------------------------------------------------------------------------------


def _everybody(facts: Facts, usual: Usual, full: list[_Hog]) -> Iterator[_Hog]:
    """Who has more of the kernel than before, all together, where nobody alone is a hog; if most of what they do is the
    kernel's work."""
    grid = facts.samples
    grouped = _grouped(grid, EVERYBODY, kind)
    if moving_sum(grouped.kernel.sum(axis=0)[None], SECOND_BINS).max(initial=0) < HOG_RATIO * grid.hz:
        return
    for before in _before(grouped, usual, grid):
        found = list(_together(grid, grouped, before, full))
        yield from found
        if found:
            return


def _before(grouped: _Grouped, usual: Usual, grid: SampleGrid) -> Iterator[npt.NDArray[np.float64]]:
    """Samples in a quarter of a second of each kind: in the quietest seconds of the window; then, because it may have
    none, as it was before the window."""
    bins = min(HOG_QUIET_S * SECOND_BINS, grouped.kernel.shape[1])
    calm = int(moving_sum(grouped.kernel.sum(axis=0)[None], bins)[0].argmin())
    quiet: npt.NDArray[np.float64] = grouped.kernel[:, calm : calm + bins].mean(axis=1)
    yield quiet
    known = usual.kinds_before()
    if known is not None:
        yield np.minimum(quiet, [known.get(name, 0.0) * grid.hz / SECOND_BINS for name in grouped.names])


def _together(grid: SampleGrid, grouped: _Grouped, before: npt.NDArray[np.float64], full: list[_Hog]) -> Iterator[_Hog]:
    enough = HOG_RATIO * grid.hz
    grown = _has_grown(grouped, before, grid)
    kinds = tuple(name for name, has in zip(grouped.names, grown.tolist(), strict=True) if has)
    beyond = (grouped.kernel[grown] - before[grown, None]).sum(axis=0)
    in_a_second = moving_sum(beyond[None], SECOND_BINS)[0]
    for first, last in runs(in_a_second >= enough, bridge=SECOND_BINS):
        first, end = _trimmed(beyond, first, last + SECOND_BINS - 1, enough / SECOND_BINS / 2)
        kernel, everything = (counts[grown, first:end].sum() for counts in (grouped.kernel, grouped.everything))
        peak = float(in_a_second[max(0, first - SECOND_BINS) : last].max()) / grid.hz
        parts = [grouped.of(grid, number, first, end) for number in np.flatnonzero(grown).tolist()]
        mine = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        hog = _hog(grid, (EVERYBODY, EVERYBODY), (first, end), mine, peak)
        if hog is not None and kernel >= MOSTLY_KERNEL * everything and not _has_hog(full, hog, kinds):
            earlier = float(before[grown].sum()) * SECOND_BINS / grid.hz
            yield hog._replace(kinds=kinds, new=True, usual=earlier)


def _has_hog(full: list[_Hog], everybody: _Hog, kinds: tuple[str, ...]) -> bool:
    return any(_overlap(other, everybody) and kind(other.task) in kinds for other in full)


def _has_grown(grouped: _Grouped, before: npt.NDArray[np.float64], grid: SampleGrid) -> Mask:
    """By more than chance: samples of an even load come as a Poisson process does."""
    bins = min(MODERATE_HOG_S * SECOND_BINS, grouped.kernel.shape[1])
    most, had = moving_sum(grouped.kernel, bins).max(axis=1), before * bins
    least = HOG_KIND_GROWN_CORES * grid.hz * bins / SECOND_BINS
    grown: Mask = most - had >= np.maximum(
        np.maximum(least, HOG_GROWN_RATIO * had), HOG_CHANCE_DEVIATIONS * np.sqrt(had)
    )
    return grown


# --- one explains another --------------------------------------------------------------------------------------------


def _explains(smaller: _Hog, larger: _Hog) -> bool:
    """It is one of the larger group, and has most of its samples; another task that is as busy explains nothing."""
    mostly = smaller.samples >= HOG_SMALLER_GROUP_SHARE * larger.samples
    return mostly and _overlap(smaller, larger) and KEYS[larger.level](smaller.task) == larger.name


def _is_part_of(moderate: _Hog, other: _Hog) -> bool:
    """It is the same task, or another was at work on its cores most of the time, or it was one of everybody then; a
    second of somebody else, or of everybody, is no reason, and neither is somebody on other cores."""
    together = min(moderate.last, other.last) - max(moderate.first, other.first)
    among = other.level == EVERYBODY
    same = kind(moderate.task) in other.kinds if among else moderate.task.comm == other.task.comm
    if not same and moderate.home.isdisjoint(other.home):
        return False
    return together > (0 if same and not among else (moderate.last - moderate.first) / 2)


def _overlap(one: _Hog, other: _Hog) -> bool:
    return min(one.last, other.last) > max(one.first, other.first)


def _name(grid: SampleGrid, hog: _Hog) -> str:
    """One task by its name, several as what they are."""
    who = hog.task.comm or hog.name
    if hog.level == PARENT:
        parent = grid.ancestry.parent_of(hog.task)
        return f"the children of {'a process that was not sampled' if parent is None else parent.comm}"
    if hog.level == EVERYBODY:
        return f"{who} and others together"
    if hog.tasks == 1 or hog.level == "thread":  # a thread that was renamed is several tasks, and one thread
        return who
    if hog.level == KERNEL_THREADS:
        return f"{hog.tasks} {hog.name} threads"
    if hog.level == COMM:
        return f"{hog.tasks} threads of {hog.name}" if hog.pids == 1 else f"{hog.tasks} tasks named {hog.name}"
    return f"the tasks of {_owner(hog)}"


def _owner(hog: _Hog) -> str:
    """A container and its scope go by the container's name; a unit or a cgroup by its own."""
    is_container = hog.task.container is not None and hog.task.container[:SHORT_ID] in hog.name
    return (hog.task.named.label if is_container else None) or hog.name


def _symptom(grid: SampleGrid, hog: _Hog, *, worth_a_word: bool = False) -> Symptom:
    seconds = (hog.last - hog.first) * BIN_US / 1e6
    where = f"core {hog.cpus[0]}" if len(hog.cpus) == 1 else f"{len(hog.cpus)} cores"
    before = f" ({hog.usual:.2f} before)" if hog.usual is not None and hog.usual >= HOG_USUAL_SHOWN_CORES else ""
    return Symptom(
        DETECTOR,
        grid.start_us + hog.first * BIN_US,
        grid.start_us + hog.last * BIN_US,
        f"{_name(grid, hog)} used {hog.ratio:.2f} cores in the kernel{before} for {seconds:.1f} s, on {where}",
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
            "usual": hog.usual,
            "new": hog.new,
            "worth_a_word": worth_a_word,
            "kinds": hog.kinds,
            "who": _name(grid, hog),
            "many": hog.tasks > 1 and hog.level != "thread",
        },
        finding="kernel-crowd" if hog.level != THREAD else "kernel-hog" if len(hog.cpus) == 1 else MIGRATING,
    )


DETECTOR = Detector(
    kind="kernel_hog",
    title="one task keeps the kernel busy",
    reported_when="a thread, a program, a unit or the children of one parent spent 0.9 of a CPU in the kernel for a "
    "second, on any cores, and more than before; or no single one did, but all whose use grew did "
    "together. Three kinds of use count as background: what was always there; 0.4 of a CPU for five "
    "seconds, as on every busy web server; and tasks that share only a name, with little on each core. "
    "Background is reported, as `info`, only if a confirmed pattern explains it or half a CPU of it is "
    "new",
    find=find,
    source="samples",
    role="hog",
    begins="onset",
    joins="migrating",
    weight=1,
    bounds_case=True,
    names_hog=True,
)
