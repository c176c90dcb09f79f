"""Heat map and flame graph as one HTML file that works without a network: select on the one, and the other follows.

The file holds the samples themselves, not a picture of them: for each sample the cell of the heat map, the core, and
the node of the tree in which its stack ends. The page adds nodes up to their parents, so the flame graph of any
selection is one pass over the samples in it. All of it is one JSON document, deflated and in base64; page.js says how
it is read. A window with more samples than `MAX_SAMPLES` is thinned to every n-th sample, which the page says; the heat
map is drawn from the kept samples too, so both show the same.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from datetime import datetime, tzinfo
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from zombiescope.profile import colours, flame, heatmap
from zombiescope.profile.flame import Tree
from zombiescope.profile.seconds import SECOND_US
from zombiescope.profile.selection import Rows, Selection
from zombiescope.profile.stacks import is_skid
from zombiescope.recording.columns import Ints

MAX_SAMPLES = 1_000_000

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
    data = _data(selection, zone, rows, base) | {"heading": heading, "by": by, "invert": invert}
    packed = base64.b64encode(zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 6)).decode()
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


def _data(selection: Selection, zone: tzinfo, rows: int, base: Ints | None) -> dict[str, Any]:
    kept, thinned = _samples(selection)
    known = selection.stacks
    stack = known.rows_of(kept.stack)
    tree = flame.fold(known, np.bincount(stack, minlength=known.count), base, below_ratio=0)
    first_us, columns = heatmap.grid(selection, SECOND_US)
    offset_s = datetime.fromtimestamp(selection.start_us / 1e6, zone).utcoffset()
    return {
        "start": first_us / 1e6,
        "columns": columns,
        "rows": rows,
        "zone_s": offset_s.total_seconds() if offset_s else 0,
        "thinned": thinned,
        "blind": [[start / 1e6, end / 1e6] for start, end in heatmap.blind(selection)],
        "cores": list(heatmap.cores(selection, np.unique(kept.cpu[kept.cpu >= 0]).tolist())),
        "cell": np.diff(heatmap.cells(kept.time_us, first_us, rows), prepend=0).tolist(),
        "cpu": kept.cpu.tolist(),
        "node": tree.leaf[stack].tolist(),
        **_tree(tree),
        "base": _leaf_counts(tree, base),
    }


def _samples(selection: Selection) -> tuple[Rows, int]:
    """The samples in the order of time, and n where only every n-th was kept."""
    batches = list(selection.batches())
    if not batches:
        nothing = np.zeros(0, np.int64)
        return Rows(nothing, nothing, nothing), 1
    time, cpu, stack = (
        np.concatenate([getattr(rows, name) for rows in batches]) for name in ("time_us", "cpu", "stack")
    )
    step = max(1, -(-len(time) // MAX_SAMPLES))
    order = np.argsort(time, kind="stable")[::step]
    return Rows(time[order], cpu[order], stack[order]), step


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


def _leaf_counts(tree: Tree, base: Ints | None) -> list[list[int]] | None:
    """[node, samples] of the other window."""
    if base is None:
        return None
    sampled = np.flatnonzero(base)
    return [list(pair) for pair in zip(tree.leaf[sampled].tolist(), base[sampled].tolist(), strict=True)]
