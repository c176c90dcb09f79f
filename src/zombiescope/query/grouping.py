"""Stacks with their owner below them: the unit, container, pod, image, process or thread that was sampled is the root.

In an inverted graph it stays the root: each owner has a graph of its own that begins where the time was spent.

Samples are counted by task and stack, so this reads them all; summaries count stacks alone.
"""

from __future__ import annotations

import numpy as np

from zombiescope.query.groups import Groups, groups
from zombiescope.query.levels import Level
from zombiescope.query.selection import ImportFacts, Selection
from zombiescope.query.stacks import Function, Stacks
from zombiescope.store.columns import Ints

KIND = "owner"


def grouped(selection: Selection, by: Level, *, invert: bool = False) -> tuple[Stacks, Ints]:
    """The stacks that occur, each once for every group, and how often. `invert`: the group is the innermost frame, for
    whoever folds from there, and leaves that only look hot are left out already."""
    known = selection.stacks.without_skid() if invert else selection.stacks
    found = groups(selection, by)
    pairs, counts = _counted(selection, known, found)
    return _joined(known, [group.name for group in found.all], pairs, innermost=invert), np.append(counts, 0)


def _counted(selection: Selection, known: Stacks, found: Groups) -> tuple[Ints, Ints]:
    """Pairs of group and stack, and how many samples each has."""
    weighted = ImportFacts.of(selection.recording).weighted
    sums: dict[int, int] = {}
    for task, stack, period in selection.columns("task", "stack", "period"):
        pair, row = np.unique(found.of(task) * known.count + known.rows_of(stack), return_inverse=True)
        added = np.bincount(row, period if weighted else None, len(pair)).astype(np.int64)
        for key, count in zip(pair.tolist(), added.tolist(), strict=True):
            sums[key] = sums.get(key, 0) + count
    pairs = np.array(sorted(sums), np.int64)
    return pairs, np.array([sums[key] for key in pairs.tolist()], np.int64)


def _joined(known: Stacks, names: list[str], pairs: Ints, *, innermost: bool) -> Stacks:
    """A group's frame at one end of each stack; the stack of samples that have none stays last."""
    group, row = np.divmod(pairs, known.count)
    plain = known.only(row)
    lengths = plain.ends - plain.starts
    lengths[:-1] += 1
    ends = np.cumsum(lengths)
    flat = np.empty(int(ends[-1]), np.int32)
    first = ends - lengths
    is_group = np.zeros(len(flat), bool)
    is_group[ends[:-1] - 1 if innermost else first[:-1]] = True
    flat[is_group] = len(known.functions) + group
    flat[~is_group] = plain.flat
    return Stacks((*known.functions, *(Function(name, None, KIND) for name in names)), flat, first, ends)
