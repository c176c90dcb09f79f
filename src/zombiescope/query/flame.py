"""Stacks folded into a tree: the flame graph, its inversion, and the difference of two windows.

The tree is arrays, breadth first: node 0 is the root, a parent stands before its children, children of one parent
stand in the order of name. It is grown level by level (native/fold.pxi), and a branch that is too narrow to be seen is
given up where it becomes so. What was given up is counted: value = self + the children's values + what was pruned
below.

In a difference every node has the samples of both windows. `delta` is how many samples more than expected the
first has, if the other were as long: positive grew, negative shrank. A frame that vanished has value 0 and stays.

The inverted tree starts at the innermost frame. Leaves that only look hot are left out there (store/stacks.py),
because the question that an inverted graph answers is where the time went.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from zombiescope._native import fold_stacks
from zombiescope.query.stacks import Function, Stacks
from zombiescope.store.columns import Ints

ROOT = Function("all", None, "root")
VISIBLE_RATIO = 0.0005
"""Half a pixel of a graph 1,000 pixels wide."""

MAX_NESTED = 400
"""Levels of a tree that is written as nested JSON: two of JSON each, and readers give up at a thousand."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pruned:
    """Branches narrower than `below_ratio` of the whole, and the samples in them."""

    branches: int
    samples: int
    below_ratio: float


@dataclass(frozen=True, slots=True)
class Tree:
    """`base` has the samples of the other window in a difference. `leaf`: the node in which each stack ends, or the
    last of it that was not pruned; -1 for a stack without samples."""

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

    def levels(self) -> list[slice]:
        """The nodes of each depth, from the root: they stand together."""
        ends = np.searchsorted(self.depth, np.arange(int(self.depth[-1]) + 2)).tolist()
        return [slice(*each) for each in pairwise(ends)]

    def name(self, node: int) -> Function:
        return self.functions[self.function[node]] if node else ROOT


def fold(
    known: Stacks, counts: Ints, base: Ints | None = None, *, invert: bool = False, below_ratio: float = VISIBLE_RATIO
) -> Tree:
    """The tree of stacks that were sampled `counts` times, and in the other window `base` times."""
    known = known.without_skid() if invert else known
    place = _by_name(known.functions)
    leaf = np.empty(known.count, np.int64)
    arrays, branches, lost = fold_stacks(
        np.ascontiguousarray(known.flat, np.int32),
        np.ascontiguousarray(known.starts),
        np.ascontiguousarray(known.ends),
        np.ascontiguousarray(counts),
        None if base is None else np.ascontiguousarray(base),
        place.astype(np.int32),
        invert,
        below_ratio * float(counts.sum()),
        0.0 if base is None else below_ratio * float(base.sum()),
        leaf,
    )
    places, parent, depth, value, own, in_base = (np.frombuffer(each, np.int64) for each in arrays)
    function = np.argsort(place)[places]
    function[0] = 0
    pruned = Pruned(branches, lost, below_ratio)
    return Tree(known.functions, function, parent, depth, value, own, None if base is None else in_base, pruned, leaf)


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
    for level in tree.levels()[1:]:
        left[level] = left[tree.parent[level]] + within[level.start - 1 : level.stop - 1]
    return left


def nested(tree: Tree) -> dict[str, Any]:
    """The tree as JSON has it: {name, module, kind, value, self, children, delta?, base?}.

    What is deeper than MAX_NESTED is not in it: its samples are in the value of the deepest frame that is.
    """
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
        if parent >= 0 and tree.depth[node] <= MAX_NESTED:
            nodes[parent]["children"].append(made)
    return nodes[0]


# --- pruning ----------------------------------------------------------------------------------------------------------
# A tree made small enough to be sent: its narrowest branches are left out until the rest fits, and that is said.
#
# What a node costs depends on where it goes (JSON, SVG, the page), so whoever writes it says so, node by node. Widths
# do not grow from a parent to its children, so what is left is always one tree.

FILE_BYTES = 1_000_000
"""What a browser or a pipe is given at most, as long as nobody asks for more."""


def prune(tree: Tree, costs: Floats, limit: float) -> Tree:
    """The widest nodes, as many as cost no more than `limit` together; the root always. What is left out is narrower
    than `pruned.below_ratio`, or as wide as that where not all nodes of one width fit."""
    if costs.sum() <= limit:
        return tree
    width = tree.width
    order = np.argsort(-width, kind="stable")
    fitting = int(np.searchsorted(np.cumsum(costs[order]), limit, "right"))
    kept = np.zeros(len(width), bool)
    kept[order[: max(1, fitting)]] = True  # of equally wide nodes the outer ones come first, so parents are kept
    narrowest = float(width[kept].min())
    return _cut(tree, kept, narrowest / width[0] if width[0] else 0.0)


def _cut(tree: Tree, kept: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], below_ratio: float) -> Tree:
    number = np.cumsum(kept) - 1
    nodes = np.flatnonzero(kept)
    parent = np.where(tree.parent >= 0, number[tree.parent], -1)
    given_up = ~kept & kept[tree.parent]
    pruned = Pruned(
        tree.pruned.branches + int(given_up.sum()),
        tree.total - int(tree.self_value[kept].sum()),
        max(tree.pruned.below_ratio, below_ratio),
    )
    stands_for = number[_kept_ancestors(tree, kept)]
    return replace(
        tree,
        function=tree.function[nodes],
        parent=parent[nodes],
        depth=tree.depth[nodes],
        value=tree.value[nodes],
        self_value=tree.self_value[nodes],
        base=None if tree.base is None else tree.base[nodes],
        pruned=pruned,
        leaf=np.where(tree.leaf >= 0, stands_for[tree.leaf], -1),
    )


def _kept_ancestors(tree: Tree, kept: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Ints:
    """Each node, or the nearest node above it that is kept."""
    found = np.arange(len(kept))
    for level in tree.levels()[1:]:
        lost = level.start + np.flatnonzero(~kept[level])
        found[lost] = found[tree.parent[lost]]
    return found


def json_bytes(tree: Tree) -> Floats:
    """What each node takes in the JSON of `flame.nested`, at most."""
    numbers = len(str(tree.total)) * 2 + (0 if tree.base is None else 2 * len(str(int(tree.base[0]))) + 30)
    texts = [sum(len(json.dumps(text)) for text in function) for function in tree.functions]
    fixed = len('{"name": , "module": , "kind": , "value": , "self": , "children": []}, ')
    return np.array(texts, np.float64)[tree.function] + numbers + fixed
