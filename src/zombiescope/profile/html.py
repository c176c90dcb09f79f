"""Heat map and flame graph as one HTML file that works without a network: select on the one, and the other follows.

The file holds samples, not pictures of them: for each sample the cell of the heat map, the core, and the node of the
tree in which its stack ends. The page adds nodes up to their parents, so the flame graph of any selection is one pass
over the samples in it. All of it is one JSON document, deflated and in base64; page.js says how it is read.

The file stays below 1 MB whatever the window is. Where all samples do not fit, it holds every n-th of them for
selections, and beside them what is known exactly: both heat maps in as many columns as can be seen, and how many
samples end in each node of the whole window. Frames that would have less than one of the kept samples are left out, and
their samples end in the frame that called them. The page says both.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import dataclass
from datetime import datetime, tzinfo
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from zombiescope.profile import colours, flame, heatmap, pruning
from zombiescope.profile.flame import Tree
from zombiescope.profile.heatmap import Heatmap
from zombiescope.profile.seconds import SECOND_US
from zombiescope.profile.selection import Imported, Rows, Selection
from zombiescope.profile.stacks import is_skid
from zombiescope.recording.columns import Ints

MAX_SAMPLES = 400_000
"""More are not even tried."""
THINNED_SAMPLES = 600_000
"""Read of more than that; every fourth of them is about what fits."""
_USUAL = 4
MAX_NODES = 30_000
MAX_CELLS = 100_000
"""Of a heat map that comes with a thinned file."""
MAX_COLUMNS = 1_000

_DATA_BYTES = pruning.FILE_BYTES - 60_000
"""The rest is the page itself."""
_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


def page(
    selection: Selection,
    heading: str,
    zone: tzinfo,
    *,
    rows: int = heatmap.DEFAULT_ROWS,
    by: str = "subsecond",
    invert: bool = False,
    base: Ints | None = None,
) -> str:
    """The file. `base`: how often each stack was sampled in another window, to compare with."""
    packed = _packed(selection, {"heading": heading, "by": by, "invert": invert, "rows": rows}, zone, base)
    parts = {
        name: files("zombiescope.profile").joinpath(name).read_text() for name in ("page.html", "page.css", "page.js")
    }
    fill = {
        "policy": _POLICY,
        "heading": escape(heading),
        "style": parts["page.css"],
        "script": parts["page.js"],
        "data": packed,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda mark: fill[mark[1]], parts["page.html"])


def _packed(selection: Selection, said: dict[str, Any], zone: tzinfo, base: Ints | None) -> str:
    """The data, with as many samples as fit."""
    counts = _counts(selection)
    kept = _samples(selection, int(counts.sum()))
    fixed = _fixed(selection, zone, said["rows"], counts, base, kept)
    while True:
        data = {**said, **fixed.said, **_described(selection, kept, fixed, said["rows"])}
        packed = base64.b64encode(zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 6)).decode()
        if len(packed) <= _DATA_BYTES or len(kept.rows) <= 1:
            return packed
        fewer = kept.thinned(len(packed) / _DATA_BYTES)
        if kept.step == 1:
            fixed = _fixed(selection, zone, said["rows"], counts, base, fewer)
        kept = fewer


@dataclass(frozen=True, slots=True)
class _Kept:
    """Every `step`-th sample, in the order of time: every `by`-th of those that were read."""

    read: Rows
    read_step: int
    by: int = 1

    @property
    def step(self) -> int:
        return self.read_step * self.by

    @property
    def rows(self) -> Rows:
        return Rows(*(column[:: self.by] for column in (self.read.time_us, self.read.cpu, self.read.stack)))

    def thinned(self, times: float) -> _Kept:
        return _Kept(self.read, self.read_step, max(self.by + 1, round(self.by * times)))


def _counts(selection: Selection) -> Ints:
    """Samples for each stack; a row that stands for several is one here, because a cell has no weights."""
    if not Imported.of(selection.recording).weighted:
        return selection.counts()
    known = selection.stacks
    total = np.zeros(known.count, np.int64)
    for (stack,) in selection.columns("stack"):
        total += np.bincount(known.rows_of(stack), minlength=len(total))
    return total


def _samples(selection: Selection, total: int) -> _Kept:
    """All of them, or every n-th. Parts are thinned one by one, so memory does not grow with the window."""
    step = 1 if total <= MAX_SAMPLES else -(-total // THINNED_SAMPLES)
    nothing = np.zeros(0, np.int64)
    kept = [(nothing, nothing, nothing)]
    passed = 0
    for rows in selection.batches():
        order = np.argsort(rows.time_us, kind="stable")[-passed % step :: step]
        kept.append((rows.time_us[order], rows.cpu[order], rows.stack[order]))
        passed += len(rows)
    time_us, cpu, stack = (np.concatenate(column) for column in zip(*kept, strict=True))
    order = np.argsort(time_us, kind="stable")
    return _Kept(Rows(time_us[order], cpu[order], stack[order]), step, 1 if total <= MAX_SAMPLES else _USUAL)


@dataclass(frozen=True, slots=True)
class _Fixed:
    """What does not depend on which samples are kept."""

    tree: Tree
    first_us: int
    said: dict[str, Any]


def _fixed(selection: Selection, zone: tzinfo, rows: int, counts: Ints, base: Ints | None, kept: _Kept) -> _Fixed:
    total = int(counts.sum())
    thinned = kept.step > 1
    tree = flame.fold(selection.stacks, counts, base, below_ratio=kept.step / total if thinned else 0.0)
    tree = pruning.within(tree, np.ones(len(tree.value)), MAX_NODES)
    first_us, columns = heatmap.grid(selection, SECOND_US)
    offset_s = datetime.fromtimestamp(selection.start_us / 1e6, zone).utcoffset()
    cpus = np.unique(kept.rows.cpu[kept.rows.cpu >= 0]).tolist()
    said = {
        "start": first_us / 1e6,
        "columns": columns,
        "zone_s": offset_s.total_seconds() if offset_s else 0,
        "total": total,
        "pruned": [tree.pruned.branches, tree.pruned.samples, tree.pruned.below_ratio],
        "blind": [[start / 1e6, end / 1e6] for start, end in heatmap.blind(selection)],
        "cores": list(heatmap.cores(selection, cpus)),
        "maps": _maps(selection, rows) if thinned else None,
        "whole": _leaf_counts(tree, counts).tolist() if thinned else None,
        "base": None if base is None else _pairs(_leaf_counts(tree, base)),
        **_tree(tree),
    }
    return _Fixed(tree, first_us, said)


def _described(selection: Selection, kept: _Kept, fixed: _Fixed, rows: int) -> dict[str, Any]:
    samples = kept.rows
    return {
        "thinned": kept.step,
        "cell": np.diff(heatmap.cells(samples.time_us, fixed.first_us, rows), prepend=0).tolist(),
        "cpu": samples.cpu.tolist(),
        "node": fixed.tree.leaf[selection.stacks.rows_of(samples.stack)].tolist(),
    }


def _maps(selection: Selection, rows: int) -> dict[str, Any]:
    """Both heat maps exactly, in columns of `per` seconds."""
    seconds, cores = heatmap.subsecond(selection, rows), heatmap.by_core(selection)
    columns = max(1, min(MAX_COLUMNS, MAX_CELLS // max(1, rows, cores.rows)))
    seconds, cores = seconds.narrowed(columns), cores.narrowed(columns)
    return {
        "per": seconds.column_us // SECOND_US,
        "subsecond": _differences(seconds),
        "core": _differences(cores),
        "cores": list(cores.cores or ()),
    }


def _differences(drawn: Heatmap) -> list[int]:
    """Each cell as the difference to the one before it in time: numbers that deflate well."""
    changes: list[int] = np.diff(drawn.values, axis=0, prepend=0).reshape(-1).tolist()
    return changes


def _tree(tree: Tree) -> dict[str, Any]:
    """Nodes but the root, and only the functions that they use."""
    used, function = np.unique(tree.function[1:], return_inverse=True)
    functions = [tree.functions[number] for number in used.tolist()]
    modules = sorted({function.module or "" for function in functions})
    place = {module: number for number, module in enumerate(modules)}
    return {
        "parent": np.diff(tree.parent[1:], prepend=0).tolist(),
        "function": function.tolist(),
        "names": [function.name for function in functions],
        "module": [place[function.module or ""] for function in functions],
        "modules": modules,
        "kind": [function.kind for function in functions],
        "colour": [colours.of(function) for function in functions],
        "skid": [number for number, function in enumerate(functions) if is_skid(function)],
        "heat": list(colours.HEAT),
    }


def _leaf_counts(tree: Tree, counts: Ints) -> Ints:
    """Samples that end in each node, or in what was left out above it."""
    sampled = np.flatnonzero(counts)
    ends = np.bincount(tree.leaf[sampled], counts[sampled], len(tree.value))
    return ends.astype(np.int64)


def _pairs(ends: Ints) -> list[list[int]]:
    """[node, samples] of nodes that have any."""
    nodes = np.flatnonzero(ends)
    return [list(pair) for pair in zip(nodes.tolist(), ends[nodes].tolist(), strict=True)]
