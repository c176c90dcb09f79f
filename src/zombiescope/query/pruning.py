"""A tree made small enough to be sent: its narrowest branches are left out until the rest fits, and that is said.

What a node costs depends on where it goes (JSON, SVG, the page), so whoever writes it says so, node by node. Widths do
not grow from a parent to its children, so what is left is always one tree.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from zombiescope.query.flame import Floats, Pruned, Tree
from zombiescope.store.columns import Ints

FILE_BYTES = 1_000_000
"""What a browser or a pipe is given at most, as long as nobody asks for more."""


def within(tree: Tree, costs: Floats, limit: float) -> Tree:
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
