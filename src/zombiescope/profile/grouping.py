"""Stacks with their owner below them: the unit, container, pod, image or task that was sampled is the outermost frame.

Samples are counted by task and stack, so this reads them all; summaries count stacks alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from zombiescope.profile.selection import ImportFacts, Selection
from zombiescope.profile.stacks import Function, Stacks
from zombiescope.recording import columns, container_names
from zombiescope.recording.columns import Ints
from zombiescope.recording.container_names import NO_NAMES, ContainerName, ContainerNames

GroupedBy = Literal["none", "owner", "container", "pod", "image", "comm"]
_KIND = "unknown"
_NOBODY = {"owner": "no unit", "container": "no container", "pod": "no pod", "image": "no image", "comm": "?"}
_NAMED: dict[str, Callable[[ContainerName], str | None]] = {
    "container": lambda known: known.label,
    "pod": lambda known: known.pod_path,
    "image": lambda known: known.image,
}


def grouped(selection: Selection, by: GroupedBy) -> tuple[Stacks, Ints]:
    """The stacks that occur, each once for every group, and how often."""
    known = selection.stacks
    group_of, names = _groups(selection, by)
    weighted = ImportFacts.of(selection.recording).weighted
    sums: dict[int, int] = {}
    for task, stack, period in selection.columns("task", "stack", "period"):
        place = np.where((task >= 0) & (task < len(group_of)), task, len(group_of) - 1)
        pair, row = np.unique(group_of[place] * known.count + known.rows_of(stack), return_inverse=True)
        added = np.bincount(row, period if weighted else None, len(pair)).astype(np.int64)
        for key, count in zip(pair.tolist(), added.tolist(), strict=True):
            sums[key] = sums.get(key, 0) + count
    pairs = np.array(sorted(sums), np.int64)
    counts = np.array([sums[key] for key in pairs.tolist()], np.int64)
    return _joined(known, names, pairs), np.append(counts, 0)


def _groups(selection: Selection, by: GroupedBy) -> tuple[Ints, list[str]]:
    """Task id -> number of its group, the last for tasks that are not known; and the groups' names."""
    wanted = ("task", "comm", "unit", "container", "pod")
    rows = columns.records(selection.recording.table("tasks", *selection.span, wanted))
    boxes = {row["container"] for row in rows if row["container"]}
    boxed = container_names.read(selection.recording, *selection.span, boxes) if boxes else NO_NAMES
    numbers = {_NOBODY[by]: 0}
    group_of = np.zeros(max((row["task"] for row in rows), default=-1) + 2, np.int64)
    for row in rows:
        if row["task"] >= 0:
            group_of[row["task"]] = numbers.setdefault(_name(by, row, boxed) or _NOBODY[by], len(numbers))
    return group_of, list(numbers)


def _name(by: GroupedBy, row: dict[str, Any], boxed: ContainerNames) -> str | None:
    if by == "comm":
        return str(row["comm"]) if row["comm"] else None
    if by == "owner":
        found = boxed.owner(row["unit"], row["container"], row["pod"])
        return found[0] if found else row["comm"]
    fallback = {"container": row["container"], "pod": row["pod"]}.get(by)
    return _NAMED[by](boxed.of(row["container"], row["pod"])) or fallback


def _joined(known: Stacks, names: list[str], pairs: Ints) -> Stacks:
    """A group's frame before each stack; the stack of samples that have none stays last."""
    group, row = np.divmod(pairs, known.count)
    plain = known.only(row)
    lengths = plain.ends - plain.starts
    lengths[:-1] += 1
    ends = np.cumsum(lengths)
    flat = np.empty(int(ends[-1]), np.int32)
    first = ends - lengths
    is_group = np.zeros(len(flat), bool)
    is_group[first[:-1]] = True
    flat[is_group] = len(known.functions) + group
    flat[~is_group] = plain.flat
    return Stacks((*known.functions, *(Function(name, None, _KIND) for name in names)), flat, first, ends)
