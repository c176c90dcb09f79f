"""The flame graph of a window, or of how it differs from another."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from zombiescope.documents.columns import Columns
from zombiescope.documents.named import NONE, Named
from zombiescope.documents.window import Window
from zombiescope.profile import flame, pruning, stacks
from zombiescope.profile.flame import Tree
from zombiescope.profile.selection import Selection
from zombiescope.profile.stacks import Stacks
from zombiescope.recording import schema
from zombiescope.recording.columns import Ints
from zombiescope.recording.reader import Recording


def with_base(selection: Selection, there: Recording, other: Window) -> tuple[Selection, Ints]:
    """Both windows over the same stacks, and the counts of the other one."""
    span = (other.start_us, other.end_us)
    if there is selection.recording:
        known: Stacks = stacks.load(there, [selection.span, span])
        first, second = (Selection(there, *each, selection.filters, known) for each in (selection.span, span))
        return first, second.counts()
    base = Selection(there, *span, selection.filters)
    both = stacks.joined(selection.stacks, base.stacks)
    return Selection(selection.recording, *selection.span, selection.filters, both), stacks.behind(
        selection.stacks, base.counts()
    )


def document(node: str, window: Window, other: Window | None, tree: Tree, *, nested: bool = True) -> dict[str, Any]:
    made: dict[str, Any] = {
        "node": node,
        "from": window.start_us / 1e6,
        "to": window.end_us / 1e6,
        "total": tree.total,
        "pruned": {
            "branches": tree.pruned.branches,
            "samples": tree.pruned.samples,
            "below_ratio": tree.pruned.below_ratio,
        },
    }
    if other is not None and tree.base is not None:
        made["against"] = {
            "from": other.start_us / 1e6,
            "to": other.end_us / 1e6,
            "total": int(tree.base[0]),
        }
    return made | {"root": flame.nested(tree)} if nested else made


def columns(recording: Recording, window: Window, other: Window | None, tree: Tree, *, invert: bool) -> Columns:
    """The same as typed arrays, node by node; the root's name is "all"."""
    said = document(recording.name, window, other, tree, nested=False)
    named = Named(tree.functions, tree.function[1:])
    scalars = said | {
        "base_total": None if tree.base is None else int(tree.base[0]),
        "scale": tree.scale,
        "invert": invert,
        "total_recording_samples": sum(part.count(schema.SAMPLES) for part in recording.parts),
        "names": [*named.names, flame.ROOT.name],
        "modules": list(named.modules),
        "kinds": [*named.kinds, flame.ROOT.kind],
    }
    arrays: dict[str, npt.NDArray[Any]] = {
        "name": np.append(len(named.names), named.name).astype(np.uint32),
        "module": np.append(NONE, named.module).astype(np.uint32),
        "kind": np.append(len(named.kinds), named.kind).astype(np.uint8),
        "parent": tree.parent.astype(np.int32),
        "depth": tree.depth.astype(np.uint16),
        "value": tree.value.astype(np.float64),
        "self": tree.self_value.astype(np.float64),
    }
    if tree.base is not None:
        arrays["base"] = tree.base.astype(np.float64)
        arrays["base_self"] = _own(tree, tree.base)
    return Columns("flamegraph", scalars, arrays)


def _own(tree: Tree, values: Ints) -> flame.Floats:
    """What of each node is not in a child that is shown."""
    below = np.bincount(tree.parent[1:], values[1:], len(values)) if len(values) > 1 else np.zeros(len(values))
    return values.astype(np.float64) - below


def within_nodes(tree: Tree, most: int) -> Tree:
    """The widest nodes, as many as a picture is asked to have."""
    return pruning.within(tree, np.ones(len(tree.value)), most)
