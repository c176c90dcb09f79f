"""Flame graph and heat map as text for a terminal. Lines are lists of pieces (text, colour): a terminal that has
colours paints the pieces, a file or a pipe keeps the text, and either can be read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import NamedTuple

import numpy as np

from zombiescope.query import colours, flame
from zombiescope.query.flame import MAX_NESTED, Tree
from zombiescope.query.heatmap import Heatmap
from zombiescope.query.short_names import fitted

_SHADES = "·░▒▓█"
_MAX_LINES = 25
_LABEL = 6
_PATHS = 8
_WORTH_A_LINE = 200
"""One sample of so many."""


class Piece(NamedTuple):
    """Text, and the colour behind it or of it (#rrggbb)."""

    text: str
    behind: str | None = None
    colour: str | None = None


Line = list[Piece]


def plain(lines: Sequence[Line]) -> str:
    return "".join("".join(piece.text for piece in line).rstrip() + "\n" for line in lines)


def flamegraph(tree: Tree, width: int) -> list[Line]:
    """The root on top. A frame starts with ▏ and is as wide as its samples; one below a character is left out."""
    wide = tree.width
    if not wide[0]:
        return []
    scale = width / wide[0]
    left, delta = flame.lefts(tree), tree.delta
    lines: list[Line] = []
    levels = tree.levels()
    for depth, level in enumerate(levels):
        if depth > MAX_NESTED:
            lines.append([Piece(f"... and {len(levels) - depth:,} levels below")])
            break
        line: Line = []
        at = 0
        for node in range(level.start, level.stop):
            first, last = round(left[node] * scale), round((left[node] + wide[node]) * scale)
            if last <= first or first < at:
                continue
            if first > at:
                line.append(Piece(" " * (first - at)))
            function = tree.name(node)
            fill = colours.of(function) if delta is None else colours.of_delta(float(delta[node]), wide[node])
            line.append(Piece(_cell(function.name, last - first), behind=fill))
            at = last
        if not line:
            break
        lines.append(line)
    return lines


def hottest(tree: Tree, width: int, *, inverted: bool = False, top: int = _PATHS) -> list[str]:
    """Where most samples are, in words: a frame that is too narrow for its name says nothing in a picture. The function
    first, then its callers as far as they fit. Nothing for a difference, whose tables are `diff`'s."""
    if tree.base is not None or not tree.total:
        return []
    if inverted:  # the functions themselves stand below the root, their callers above them
        nodes = [(int(tree.value[node]), node) for node in np.flatnonzero(tree.depth == 1).tolist()]
    else:
        nodes = [(int(tree.self_value[node]), node) for node in np.flatnonzero(tree.self_value).tolist() if node]
    best = sorted(nodes, reverse=True)[:top]
    return [
        f"{100 * count / tree.total:5.1f}%  {_path(tree, node, width - 8)}"
        for count, node in best
        if count * _WORTH_A_LINE >= tree.total
    ]


def _path(tree: Tree, node: int, width: int) -> str:
    text = fitted(_shown(tree.name(node).name), width)
    while (node := int(tree.parent[node])) > 0:
        caller = f" < {_shown(tree.name(node).name)}"
        if len(text) + len(caller) > width - 4:
            return f"{text} < …"
        text += caller
    return text


def _shown(name: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def _cell(name: str, width: int) -> str:
    text = _shown(name)
    return ("▏" + (fitted(text, width - 1) if width > 3 else text[: width - 1])).ljust(width)


def narrowed(drawn: Heatmap, width: int) -> Heatmap:
    """What `heatmap` shows of it in so many columns of text."""
    return drawn.narrowed(max(1, width - _LABEL), _MAX_LINES)


def heatmap(drawn: Heatmap, width: int, zone: tzinfo) -> list[Line]:
    """Time to the right; the second goes upwards from its start, cores go downwards."""
    label = _LABEL
    drawn = narrowed(drawn, width)
    blind = _blind_columns(drawn)
    lines: list[Line] = []
    scale = colours.HeatScale.of(drawn.shades.ravel().tolist())
    for line in range(drawn.rows):
        row = line if drawn.cores is not None else drawn.rows - 1 - line
        lines.append([Piece(_row_label(drawn, row).rjust(label - 1) + " "), *_cells(drawn, row, blind, scale)])
    lines.append([Piece(" " * label + _clock_marks(drawn, zone))])
    return lines


def _cells(drawn: Heatmap, row: int, blind: set[int], scale: colours.HeatScale) -> Line:
    cells: Line = []
    for column, value in enumerate(drawn.shades[:, row].tolist()):
        if value > 0:
            shade = _SHADES[min(len(_SHADES) - 1, int(scale.level(value) * len(_SHADES)))]
            cells.append(Piece(shade, colour=scale.colour(value)))
        else:
            cells.append(Piece("?" if column in blind else " "))
    return cells


def _blind_columns(drawn: Heatmap) -> set[int]:
    """Columns that are wholly in a hole of the recording."""
    found: set[int] = set()
    for start, end in drawn.blind:
        first = -(-(start - drawn.start_us) // drawn.column_us)
        found.update(range(first, (end - drawn.start_us) // drawn.column_us))
    return found


def _row_label(drawn: Heatmap, row: int) -> str:
    if drawn.cores is not None:
        return str(drawn.cores[row])
    return f"{row / drawn.rows:.2g}s" if row in (0, drawn.rows // 2, drawn.rows - 1) else ""


def _clock_marks(drawn: Heatmap, zone: tzinfo) -> str:
    text = ""
    for column in range(0, drawn.columns, 20):
        at = datetime.fromtimestamp((drawn.start_us + column * drawn.column_us) / 1e6, zone)
        if column + 8 <= max(8, drawn.columns):
            text = text.ljust(column) + f"{at:%H:%M:%S}"
    return text
