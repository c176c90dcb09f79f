"""Stacks folded into a tree: the flame graph, its inversion, and the difference of two windows.

The tree is arrays, breadth first: node 0 is the root, a parent stands before its children, children of one parent
stand in the order of name. It is grown level by level with one sort of the stacks that are still alive at a level,
so the work is in numpy and a branch that is too narrow to be seen is given up where it becomes so. What was given
up is counted: value = self + the children's values + what was pruned below.

In a difference every node has the samples of both windows. `delta` is how many samples more than expected the
first has, if the other were as long: positive grew, negative shrank. A frame that vanished has value 0 and stays.

The inverted tree starts at the innermost frame. Leaves that only look hot are left out there (recording/stacks.py),
because the question that an inverted graph answers is where the time went.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zombiescope.profile.stacks import Function, Stacks
from zombiescope.recording.columns import Ints

ROOT = Function("all", None, "root")
VISIBLE_RATIO = 0.0005
"""Half a pixel of a graph 1,000 pixels wide."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pruned:
    """Branches narrower than `below_ratio` of the whole, and the samples in them."""

    branches: int
    samples: int
    below_ratio: float


@dataclass(frozen=True, slots=True)
class Tree:
    """`base` has the samples of the other window in a difference. `leaf`: the node in which each stack ends, or -1."""

    functions: tuple[Function, ...]
    function: Ints
    parent: Ints
    depth: Ints
    value: Ints
    self_value: Ints
    base: Ints | None
    pruned: Pruned
    leaf: Ints

    @property
    def total(self) -> int:
        return int(self.value[0])

    @property
    def scale(self) -> float:
        """What a sample of the other window counts, as if that were as long as this one."""
        if self.base is None or not self.base[0]:
            return 0.0
        return float(self.value[0] / self.base[0]) if self.value[0] else 1.0

    @property
    def delta(self) -> Floats | None:
        return None if self.base is None else self.value - self.base * self.scale

    @property
    def width(self) -> Floats:
        """How wide a node is drawn; in a difference the mean of both, so that what vanished can be seen."""
        return self.value.astype(np.float64) if self.base is None else (self.value + self.base * self.scale) / 2

    def name(self, node: int) -> Function:
        return self.functions[self.function[node]] if node else ROOT


def fold(
    known: Stacks, counts: Ints, base: Ints | None = None, *, invert: bool = False, below_ratio: float = VISIBLE_RATIO
) -> Tree:
    """The tree of stacks that were sampled `counts` times, and in the other window `base` times."""
    known = known.without_skid() if invert else known
    return _Growth(known, counts, base, invert, below_ratio).tree()


class _Growth:
    def __init__(self, known: Stacks, counts: Ints, base: Ints | None, invert: bool, below_ratio: float) -> None:
        self.known, self.counts, self.base, self.invert = known, counts, base, invert
        self.below_ratio = below_ratio
        self.leaf = np.full(known.count, -1, np.int64)
        self.order = _by_name(known.functions)
        self.branches = self.lost = 0
        self.levels: list[dict[str, Ints]] = []

    def tree(self) -> Tree:
        seen = self.counts if self.base is None else self.counts + self.base
        alive = np.flatnonzero(seen > 0)
        at = np.zeros(len(alive), np.int64)
        self._add(np.zeros(1, np.int64), np.full(1, -1, np.int64), alive, at, 0)
        depth = 0
        while len(alive):
            alive, at = self._grow(alive, at, depth)
            depth += 1
        return self._done()

    def _grow(self, alive: Ints, at: Ints, depth: int) -> tuple[Ints, Ints]:
        """The next level: the stacks that go on in it, and the node of each."""
        first = sum(len(level["function"]) for level in self.levels)
        width = len(self.known.functions)
        place = self.known.ends[alive] - 1 - depth if self.invert else self.known.starts[alive] + depth
        keys, node = np.unique(at * width + self.order[self.known.flat[place]], return_inverse=True)
        visible = self._visible(alive, node, len(keys))
        self.branches += int((~visible).sum())
        kept = visible[node]
        self.lost += int(self.counts[alive[~kept]].sum())
        new = np.cumsum(visible) - 1
        alive, at = alive[kept], new[node[kept]]
        function = np.argsort(self.order)[keys[visible] % width]
        self._add(function, keys[visible] // width, alive, at, depth + 1)
        goes_on = (self.known.ends[alive] - self.known.starts[alive]) > depth + 1
        self.leaf[alive[~goes_on]] = first + at[~goes_on]
        return alive[goes_on], first + at[goes_on]

    def _visible(self, alive: Ints, node: Ints, nodes: int) -> npt.NDArray[np.bool_]:
        threshold = self.below_ratio * self.counts.sum()
        visible = np.bincount(node, self.counts[alive], nodes) >= max(threshold, 1 if self.base is None else 0)
        if self.base is not None:
            visible &= np.bincount(node, self.counts[alive], nodes) > 0
            in_base = np.bincount(node, self.base[alive], nodes)
            visible |= (in_base > 0) & (in_base >= self.below_ratio * self.base.sum())
        return np.asarray(visible, bool)

    def _add(self, function: Ints, parent: Ints, alive: Ints, at: Ints, depth: int) -> None:
        ends = self.known.ends[alive] - self.known.starts[alive] == depth
        level = {
            "function": function,
            "parent": parent,
            "depth": np.full(len(function), depth, np.int64),
            "value": _sum(at, self.counts[alive], len(function)),
            "self": _sum(at[ends], self.counts[alive[ends]], len(function)),
        }
        if self.base is not None:
            level["base"] = _sum(at, self.base[alive], len(function))
        self.levels.append(level)

    def _done(self) -> Tree:
        joined = {name: np.concatenate([level[name] for level in self.levels]) for name in self.levels[0]}
        return Tree(
            self.known.functions,
            joined["function"],
            joined["parent"],
            joined["depth"],
            joined["value"],
            joined["self"],
            joined.get("base"),
            Pruned(self.branches, self.lost, self.below_ratio),
            self.leaf,
        )


def _sum(at: Ints, counts: Ints, nodes: int) -> Ints:
    # Sums of counts stay below 2^53, where float64 is exact.
    return np.bincount(at, counts, nodes).astype(np.int64)


def _by_name(functions: tuple[Function, ...]) -> Ints:
    """Function number -> its place in the order of name."""
    keys = sorted(
        range(len(functions)), key=lambda number: (functions[number].name, functions[number].module or "", number)
    )
    place = np.empty(len(keys), np.int64)
    place[keys] = np.arange(len(keys))
    return place


def lefts(tree: Tree) -> Floats:
    """Where each node begins, in the unit of `width`: after its parent's earlier children."""
    width = tree.width
    left = np.zeros(len(width))
    if len(width) < 2:
        return left
    running = np.cumsum(width[1:]) - width[1:]
    parent = tree.parent[1:]
    first = np.flatnonzero(np.diff(parent, prepend=-1))
    families = np.repeat(first, np.diff(np.append(first, len(parent))))
    within = running - running[families]
    for depth in range(1, int(tree.depth[-1]) + 1):
        nodes = np.flatnonzero(tree.depth == depth)
        left[nodes] = left[tree.parent[nodes]] + within[nodes - 1]
    return left


def nested(tree: Tree) -> dict[str, Any]:
    """The tree as JSON has it: {name, module, kind, value, self, children, delta?, base?}."""
    delta = tree.delta
    nodes: list[dict[str, Any]] = []
    for node, (value, own, parent) in enumerate(
        zip(tree.value.tolist(), tree.self_value.tolist(), tree.parent.tolist(), strict=True)
    ):
        name, module, kind = tree.name(node)
        made = {"name": name, "module": module, "kind": kind, "value": value, "self": own, "children": []}
        if delta is not None and tree.base is not None:
            made["delta"] = round(float(delta[node]), 3)
            made["base"] = int(tree.base[node])
        nodes.append(made)
        if parent >= 0:
            nodes[parent]["children"].append(made)
    return nodes[0]
