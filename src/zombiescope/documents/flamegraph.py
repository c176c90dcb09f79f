"""The flame graph of a window, or of how it differs from another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from zombiescope.documents.columns import NONE, Columns, FunctionTable
from zombiescope.documents.selection import Load, Profile, load_stacks, profile
from zombiescope.query import flame, groups, stacks, svg
from zombiescope.query.flame import Tree
from zombiescope.query.levels import Level
from zombiescope.query.selection import Selection
from zombiescope.questions.views import FlamegraphQuestion
from zombiescope.questions.window import Window
from zombiescope.store import schema
from zombiescope.store.columns import Ints
from zombiescope.store.reader import Recording

UNSEEN_RATIO = 1e-5
"""A hundredth of a pixel of a graph 1,000 pixels wide; twelve hours have millions of such branches."""
_FRAME_BYTES = 5_000
"""Of a file: what is not a node."""


@dataclass(frozen=True, slots=True)
class Reference:
    """How often each stack was sampled in another window, and when that was."""

    window: Window
    counts: Ints
    selection: Selection | None = None
    """Its samples, where they may have to be told apart by their owners."""


@dataclass(frozen=True)
class Flamegraph:
    """What is drawn; folded when somebody looks."""

    question: FlamegraphQuestion
    window: Window
    selection: Selection
    title: str
    reference: Reference | None = None

    @cached_property
    def tree(self) -> Tree:
        """Everything that can be seen in a picture."""
        prune = self.question.prune
        return self._folded(flame.VISIBLE_RATIO if prune is None else prune)

    def tree_for(self, kind: Literal["svg", "json"]) -> Tree:
        """Without what would make a file of this kind too large, as long as nobody says what is to be left out."""
        if self.question.prune is not None:
            return self.tree
        costs = svg.frame_bytes(self.tree) if kind == "svg" else flame.json_bytes(self.tree)
        return flame.prune(self.tree, costs, flame.FILE_BYTES - _FRAME_BYTES)

    def document(self) -> dict[str, Any]:
        return document(self.selection.recording.name, self.window, self._other, self.tree_for("json"))

    def columns(self) -> Columns:
        """For the page, which asks for a number of nodes and draws what it needs of them."""
        nodes, prune = self.question.nodes, self.question.prune
        tree = self._folded(min(UNSEEN_RATIO, 0.2 / nodes) if prune is None else prune)
        tree = flame.prune(tree, np.ones(len(tree.value)), nodes)
        return columns(self.selection.recording, self.window, self._other, tree, invert=self.question.invert)

    @property
    def _other(self) -> Window | None:
        return None if self.reference is None else self.reference.window

    def _folded(self, below_ratio: float) -> Tree:
        if self.question.by != "none":
            return self._grouped(self.question.by, below_ratio)
        base = None if self.reference is None else self.reference.counts
        counts = self.selection.counts()
        return flame.fold(self.selection.stacks, counts, base, invert=self.question.invert, below_ratio=below_ratio)

    def _grouped(self, by: Level, below_ratio: float) -> Tree:
        invert = self.question.invert
        known, counts = groups.grouped(self.selection, by, invert=invert)
        base = None
        if self.reference is not None and self.reference.selection is not None:
            there, in_base = groups.grouped(self.reference.selection, by, invert=invert)
            base = stacks.behind(known, in_base)
            counts, known = stacks.in_front(counts, there), stacks.joined(known, there)
        return flame.fold(known, counts, base, invert=invert, below_ratio=below_ratio)


def answer(
    recording: Recording, question: FlamegraphQuestion, *, other: Recording | None = None, load: Load = load_stacks
) -> Flamegraph:
    """`other` is the recording that `against` is of, where that is another one. Raises QuestionError."""
    if question.against is None:
        found = profile(recording, question, load)
        return Flamegraph(question, found.window, found.selection, found.title)
    found = profile(recording, question)
    there = recording if other is None else other
    against = question.against.choose(there, question.window.utc)
    selection, reference = _both(found, there, against, load)
    named = "" if there is recording else f"{there.name}  "
    title = f"{found.title}  against {named}{against.heading()}"
    return Flamegraph(question, found.window, selection, title, reference)


def _both(found: Profile, there: Recording, other: Window, load: Load) -> tuple[Selection, Reference]:
    """Both windows over the same stacks."""
    selection, filters = found.selection, found.filters
    span = (other.start_us, other.end_us)
    if there is selection.recording:
        known = load(there, [selection.span, span])
        first, second = (Selection(there, *each, filters, known) for each in (selection.span, span))
        return first, Reference(other, second.counts(), second)
    base = Selection(there, *span, filters)
    both = stacks.joined(selection.stacks, base.stacks)
    counts = stacks.behind(selection.stacks, base.counts())
    return Selection(selection.recording, *selection.span, filters, both), Reference(other, counts, base)


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
    if not nested:
        return made
    if int(tree.depth.max()) > flame.MAX_NESTED:
        made["cut_at_depth"] = flame.MAX_NESTED
    return made | {"root": flame.nested(tree)}


def columns(recording: Recording, window: Window, other: Window | None, tree: Tree, *, invert: bool) -> Columns:
    """The same as typed arrays, node by node; the root's name is "all"."""
    said = document(recording.name, window, other, tree, nested=False)
    named = FunctionTable(tree.functions, tree.function[1:])
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
