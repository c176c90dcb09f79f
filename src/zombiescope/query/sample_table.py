"""The samples of a window as a table that fits into a file, from which a page folds whatever is selected in it.

For each sample it holds when it was taken (to the millisecond), the core, and the pair of task and stack; a stack is
the node of a tree in which it ends. A page adds nodes up to their parents, so the flame graph of any selection is one
pass over the samples in it (ui/src/api/frozen).

Where all samples do not fit, it holds every n-th of them for selections, and beside them what is known exactly: both
heat maps in as many columns as can be seen, and how many samples end in each node of the whole window. Frames that
would have less than one of the kept samples are left out, and their samples end in the frame that called them. Both is
said in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from zombiescope.base.time import DEFAULT_HZ, SECOND_US
from zombiescope.query import flame, heatmap
from zombiescope.query.flame import Tree
from zombiescope.query.groups import groups
from zombiescope.query.heatmap import Heatmap
from zombiescope.query.selection import ImportFacts, Selection
from zombiescope.query.stacks import is_skid
from zombiescope.store import columns, container_names
from zombiescope.store.columns import Ints
from zombiescope.store.container_names import NO_NAMES

MAX_SAMPLES = 400_000
"""More are not even tried."""
THINNED_SAMPLES = 600_000
"""Read of more than that; every fourth of them is about what fits."""
_USUAL = 4
MAX_NODES = 30_000
FEWER_NODES = 12_000
"""Of a thinned table: what is narrower has hardly a sample in it, and its names would take the place of samples."""
MAX_CELLS = 40_000
"""Of a heat map that comes with a thinned table."""
MAX_COLUMNS = 1_000
TICK_US = 1_000
FEW_PAIRS = 8
"""Samples for each distinct pair of task and stack; with fewer the table of pairs costs more than it saves."""

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class SampleTable:
    """`arrays` and what must be said beside them; profile.ts of the page names each."""

    scalars: dict[str, Any]
    arrays: Arrays


def build(
    selections: Sequence[Selection],
    limit_bytes: int,
    size: Callable[[SampleTable], int],
    *,
    rows: int = heatmap.DEFAULT_ROWS,
    base: Ints | None = None,
) -> SampleTable:
    """The table of the selections, which share their stacks, with as many samples as keep `size` of it below the limit.

    `base`: how often each stack was sampled in another window, to compare with.
    """
    counts = sum((_counts(each) for each in selections), np.zeros(selections[0].stacks.count, np.int64))
    kept = _samples(selections, int(counts.sum()))
    fixed = _fixed(selections, rows, counts, base, kept)
    while True:
        made = _table(fixed, selections[0], kept.columns, kept.step)
        taken = size(made)
        if taken <= limit_bytes or len(kept.columns) <= 1:
            return made
        # Tree and maps take the same however few samples there are, so only the samples' own part can shrink.
        bare = size(_table(fixed, selections[0], kept.columns.at(slice(0)), kept.step))
        fewer = kept.thinned((taken - bare) / max(1, limit_bytes - bare))
        if kept.step == 1:
            fixed = _fixed(selections, rows, counts, base, fewer)
        kept = fewer


@dataclass(frozen=True, slots=True)
class _Columns:
    """Samples in the order of time; -1 is a core, a stack or a task that is not known."""

    time_us: Ints
    cpu: Ints
    stack: Ints
    task: Ints

    def __len__(self) -> int:
        return len(self.time_us)

    def at(self, chosen: Ints | slice) -> _Columns:
        return _Columns(*(column[chosen] for column in (self.time_us, self.cpu, self.stack, self.task)))


@dataclass(frozen=True, slots=True)
class _Kept:
    """Every `step`-th sample: every `by`-th of those that were read."""

    read: _Columns
    read_step: int
    by: int = 1

    @property
    def step(self) -> int:
        return self.read_step * self.by

    @property
    def columns(self) -> _Columns:
        return self.read.at(slice(None, None, self.by))

    def thinned(self, times: float) -> _Kept:
        return replace(self, by=max(self.by + 1, ceil(self.by * times)))


def _counts(selection: Selection) -> Ints:
    """Samples for each stack; a row that stands for several is one here, because a cell has no weights."""
    if not ImportFacts.of(selection.recording).weighted:
        return selection.counts()
    known = selection.stacks
    total = np.zeros(known.count, np.int64)
    for (stack,) in selection.columns("stack"):
        total += np.bincount(known.rows_of(stack), minlength=len(total))
    return total


def _samples(selections: Sequence[Selection], total: int) -> _Kept:
    """All of them, or every n-th. Parts are thinned one by one, so memory does not grow with the window."""
    step = 1 if total <= MAX_SAMPLES else -(-total // THINNED_SAMPLES)
    nothing = np.zeros(0, np.int64)
    kept = [(nothing, nothing, nothing, nothing)]
    passed = 0
    for selection in selections:
        for time_us, cpu, stack, task in selection.columns("time", "cpu", "stack", "task"):
            order = np.argsort(time_us, kind="stable")[-passed % step :: step]
            kept.append((time_us[order], cpu[order], stack[order], task[order]))
            passed += len(time_us)
    read = _Columns(*(np.concatenate(column) for column in zip(*kept, strict=True)))
    read = read.at(np.argsort(read.time_us, kind="stable"))
    return _Kept(read, step, 1 if total <= MAX_SAMPLES else _USUAL)


@dataclass(frozen=True, slots=True)
class _Fixed:
    """What does not depend on which samples are kept."""

    tree: Tree
    scalars: dict[str, Any]
    arrays: Arrays


def _fixed(selections: Sequence[Selection], rows: int, counts: Ints, base: Ints | None, kept: _Kept) -> _Fixed:
    total = int(counts.sum())
    first = selections[0]
    thinned = kept.step > 1
    tree = flame.fold(first.stacks, counts, base, below_ratio=kept.step / total if thinned else 0.0)
    tree = flame.prune(tree, np.ones(len(tree.value)), FEWER_NODES if thinned else MAX_NODES)
    scalars: dict[str, Any] = {
        "total": total,
        "tick_s": TICK_US / 1e6,
        "hz": float(first.recording.node.get("hz") or DEFAULT_HZ),
        "rows": rows,
        "held": [[each.start_us / 1e6, each.end_us / 1e6] for each in selections],
        "blind": [[start / 1e6, end / 1e6] for each in selections for start, end in heatmap.blind(each)],
        "pruned": {
            "branches": tree.pruned.branches,
            "samples": tree.pruned.samples,
            "below_ratio": tree.pruned.below_ratio,
        },
    }
    functions, arrays = _functions(tree)
    if thinned:
        arrays["whole"] = _leaf_counts(tree, counts).astype(np.uint32)
        if len(selections) == 1:
            maps, drawn = _maps(first, rows)
            scalars["maps"] = maps
            arrays |= drawn
    if base is not None:
        arrays["base"] = _leaf_counts(tree, base).astype(np.uint32)
    return _Fixed(tree, scalars | functions, arrays)


def _functions(tree: Tree) -> tuple[dict[str, Any], Arrays]:
    """Nodes but the root, and only the functions that they use."""
    used, function = np.unique(tree.function[1:], return_inverse=True)
    functions = [tree.functions[number] for number in used.tolist()]
    modules = sorted({function.module or "" for function in functions})
    kinds = sorted({function.kind for function in functions})
    place = {module: number for number, module in enumerate(modules)}
    scalars = {
        "names": [function.name for function in functions],
        "modules": modules,
        "kinds": kinds,
        "skid": [number for number, function in enumerate(functions) if is_skid(function)],
    }
    arrays: Arrays = {
        "fn_module": np.array([place[function.module or ""] for function in functions], np.uint32),
        "fn_kind": np.array([kinds.index(function.kind) for function in functions], np.uint8),
        # Parents stand in the order of their children: as differences they are mostly 0 and 1.
        "node_parent": np.diff(tree.parent[1:], prepend=0).astype(np.uint32),
        "node_fn": function.astype(np.uint32),
    }
    return scalars, arrays


def _table(fixed: _Fixed, selection: Selection, samples: _Columns, step: int) -> SampleTable:
    start_us = int(samples.time_us[0]) // SECOND_US * SECOND_US if len(samples) else selection.start_us
    ticks = (samples.time_us - start_us) // TICK_US
    leaf = fixed.tree.leaf[selection.stacks.rows_of(samples.stack)]
    tasks, task = np.unique(samples.task, return_inverse=True)
    scalars = {"start": start_us / 1e6, "step": step, "tasks": _tasks(selection, tasks.tolist())}
    scalars["programs"] = _programs(selection, tasks.tolist())
    arrays: Arrays = {"time": _smallest(np.diff(ticks, prepend=0)), "cpu": _cores(samples.cpu)}
    return SampleTable(fixed.scalars | scalars, fixed.arrays | arrays | _pairs(task.reshape(-1), leaf))


def _cores(cpu: Ints) -> npt.NDArray[Any]:
    """The largest number that the type has is a core that is not known."""
    kind = np.uint8 if int(cpu.max(initial=0)) < 2**8 - 1 else np.uint16
    return np.where(cpu < 0, np.iinfo(kind).max, cpu).astype(kind)


def _pairs(task: Ints, node: Ints) -> Arrays:
    """Task and node of each sample by one number, as long as that saves anything: a task has few stacks, mostly."""
    pairs, pair = np.unique(np.stack([task, node]), axis=1, return_inverse=True)
    if pairs.shape[1] * FEW_PAIRS > len(task):
        return {"task": _smallest(task), "node": _smallest(node)}
    return {
        "pair": _smallest(pair.reshape(-1)),
        "pair_task": pairs[0].astype(np.uint32),
        "pair_node": pairs[1].astype(np.uint32),
    }


def _smallest(values: Ints) -> npt.NDArray[Any]:
    most = int(values.max(initial=0))
    return values.astype(np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.uint32)


def _tasks(selection: Selection, ids: list[int]) -> list[list[Any]]:
    """[comm, pid, tid, unit, container] of each, and where its container is known [name, image, pod, pod's uid]; a
    later row of the same task knows more and replaces the earlier."""
    names = ("comm", "pid", "tid", "unit", "container")
    table = selection.recording.table("tasks", 0, selection.end_us, ("task", *names, "pod"))
    used = set(ids)
    rows = {row["task"]: row for row in columns.records(table) if row["task"] in used}
    boxes = {row["container"] for row in rows.values() if row["container"]}
    boxed = container_names.read(selection.recording, *selection.span, boxes) if boxes else NO_NAMES

    def told(row: dict[str, Any]) -> list[Any]:
        known = boxed.of(row["container"], row["pod"])
        more = [known.name, known.image, known.pod_path, row["pod"]]
        return [row[name] for name in names] + (more if any(more) else [])

    return [told(rows[each]) if each in rows else [None] * len(names) for each in ids]


def _programs(selection: Selection, ids: list[int]) -> list[str | None]:
    """What each task is called by its program; groups.py says what that is."""
    found = groups(selection, "program")
    numbers = found.of(np.array(ids, np.int64)).tolist()
    return [found.all[number].name if number else None for number in numbers]


def _maps(selection: Selection, rows: int) -> tuple[dict[str, Any], Arrays]:
    """Both heat maps exactly, in columns of `column_s` seconds."""
    seconds, cores = heatmap.subsecond(selection, rows), heatmap.by_core(selection)
    most = max(1, min(MAX_COLUMNS, MAX_CELLS // max(1, rows, cores.rows)))
    seconds, cores = seconds.narrowed(most), cores.narrowed(most)
    scalars = {
        "start": seconds.start_us / 1e6,
        "column_s": seconds.column_us / 1e6,
        "columns": seconds.columns,
        "rows": rows,
        "cores": list(cores.cores or ()),
    }
    return scalars, {"map_subsecond": _differences(seconds), "map_core": _differences(cores)}


def _differences(drawn: Heatmap) -> npt.NDArray[np.int32]:
    """Each cell as the difference to the one before it in time: numbers that deflate well."""
    return np.diff(drawn.values, axis=0, prepend=0).reshape(-1).astype(np.int32)


def _leaf_counts(tree: Tree, counts: Ints) -> Ints:
    """Samples that end in each node, or in what was left out above it."""
    sampled = np.flatnonzero(counts)
    ends = np.bincount(tree.leaf[sampled], counts[sampled], len(tree.value))
    return ends.astype(np.int64)
