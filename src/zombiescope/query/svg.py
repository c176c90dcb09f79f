"""A flame graph or a heat map as one SVG file: nothing is loaded from anywhere, and a pointer that rests on a frame
shows its name in full. Colours of text and ground follow the reader's light or dark setting."""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, tzinfo
from itertools import groupby

import numpy as np

from zombiescope.base.text import printable_lines
from zombiescope.query import colours, flame
from zombiescope.query.flame import Floats, Tree
from zombiescope.query.heatmap import Heatmap
from zombiescope.query.short_names import fitted

WIDTH = 1200
_MARGIN = 10
_FRAME_HEIGHT = 17
_CHARACTER = 6.6
_MAX_COLUMNS = 1100
_MAX_CELLS = 60_000
"""A cell is up to 15 bytes of the file."""
_STYLE = (
    "svg{background:#fff;color:#222}text{font:11px ui-monospace,monospace;fill:#111}.h{font-weight:bold}"
    ".h,.n{fill:currentColor}.n{opacity:.75}g:hover>rect{stroke:#000;stroke-width:1}.b{fill:#888;opacity:.35}"
    "@media(prefers-color-scheme:dark){svg{background:#16181c;color:#ddd}}"
)


def flamegraph(tree: Tree, heading: str, *, icicle: bool = False) -> str:
    """The root at the bottom, as in a flame; `icicle` hangs it from the top, as an inverted graph is read."""
    depth = int(tree.depth[-1])
    top = 44
    height = top + (depth + 1) * _FRAME_HEIGHT + 30
    body = list(_frames(tree, lambda level: top + (level if icicle else depth - level) * _FRAME_HEIGHT))
    notes = [says_pruned(tree), says_colours(tree)]
    below = "".join(
        f'<text class="n" x="{_MARGIN}" y="{height - 16 + 13 * line}">{_xml(text)}</text>'
        for line, text in enumerate(note for note in notes if note)
    )
    return _document(height + 8, heading, f"{tree.total:,} samples", "".join(body) + below)


def frame_bytes(tree: Tree) -> Floats:
    """What each frame takes in the file, at most: its name stands in the title and, if there is room, on the frame."""
    fixed = 180 + (0 if tree.base is None else 30)
    names = np.array([len(_xml(function.name).encode()) for function in tree.functions], np.float64)[tree.function]
    modules = np.array([len(_xml(function.module or "").encode()) for function in tree.functions])[tree.function]
    labelled = tree.width * _scale(tree) >= 3 * _CHARACTER + 5
    costs: Floats = fixed + names + modules + np.where(labelled, names + 50, 0)
    return costs


def _xml(text: str) -> str:
    """XML has no way to write most control characters, and a file that holds one is no SVG."""
    return html.escape(printable_lines(text))


def _scale(tree: Tree) -> float:
    """Pixels for a sample."""
    return (WIDTH - 2 * _MARGIN) / float(tree.width[0]) if tree.width[0] else 0.0


def _frames(tree: Tree, y_of: Callable[[int], int]) -> Iterator[str]:
    width, left, delta = tree.width, flame.lefts(tree), tree.delta
    scale = _scale(tree)
    for node in range(len(width)):
        function = tree.name(node)
        wide = width[node] * scale
        fill = colours.of(function) if delta is None else colours.of_delta(float(delta[node]), float(width[node]))
        x, y = _MARGIN + left[node] * scale, y_of(int(tree.depth[node]))
        label = _label(function.name, wide)
        text = f'<text x="{x + 3:.1f}" y="{y + 12}">{_xml(label)}</text>' if label else ""
        yield (
            f'<g><title>{_xml(says_node(tree, node))}</title><rect x="{x:.2f}" y="{y}" width="{max(wide, 0.3):.2f}" '
            f'height="{_FRAME_HEIGHT - 1}" fill="{fill}" rx="1"/>{text}</g>'
        )


def _label(name: str, wide: float) -> str:
    room = int((wide - 5) / _CHARACTER)
    if room < 3:
        return ""
    return fitted(name, room)


def says_node(tree: Tree, node: int) -> str:
    """A frame in words: name (module), samples, part of the whole, and how it changed."""
    function = tree.name(node)
    where = f" ({function.module})" if function.module else ""
    value, total = int(tree.value[node]), tree.total
    text = f"{function.name}{where}\n{value:,} samples, {value / total if total else 0:.2%}"
    if own := int(tree.self_value[node]):
        text += f", self {own / total:.2%}"
    if tree.base is not None and tree.base[0]:
        text += f"; before {tree.base[node] / tree.base[0]:.2%}" + (", vanished" if not value else "")
    return text


def says_pruned(tree: Tree) -> str:
    """What is not drawn because it is too narrow; empty when everything is."""
    pruned = tree.pruned
    if not pruned.branches:
        return ""
    part = f"; {pruned.samples / tree.total:.1%} of samples end in them" if tree.total else ""
    return f"{pruned.branches:,} branches under {pruned.below_ratio:.2%} are not drawn{part}"


def says_colours(tree: Tree) -> str:
    if tree.base is None:
        return ""
    return "red grew, blue shrank or vanished; a frame is as wide as the mean of both windows, made equally long"


def heatmap(drawn: Heatmap, heading: str, zone: tzinfo) -> str:
    """Time to the right; the second goes upwards from its start, cores go downwards."""
    drawn = drawn.narrowed(max(1, min(_MAX_COLUMNS, _MAX_CELLS // max(1, drawn.rows))))
    left = 44
    cell_w = max(1.0, min(14.0, (WIDTH - left - _MARGIN) / max(1, drawn.columns)))
    cell_h = max(4.0, min(14.0, 500 / max(1, drawn.rows)))
    tall = drawn.rows * cell_h
    shift = f'<g transform="translate({left} 44)">'
    body = shift + _blind(drawn, cell_w, tall) + _cells(drawn, cell_w, cell_h) + _axis(drawn, cell_w, tall, zone)
    body += _rows(drawn, cell_h) + "</g>"
    unit = f"a column is {drawn.column_us / 1e6:g} s, a row is " + (
        "a core" if drawn.cores is not None else f"{1000 / max(1, drawn.rows):g} ms of the second"
    )
    return _document(
        int(tall) + 80, heading, f"{drawn.total:,} samples; {unit}; the hottest cell has {drawn.max:,}", body
    )


def _cells(drawn: Heatmap, cell_w: float, cell_h: float) -> str:
    """One path for each colour, in units of cells; neighbours of one colour are one piece of it."""
    paths: dict[str, list[str]] = defaultdict(list)
    for x, y, wide, tall, colour in _runs(drawn):
        paths[colour].append(f"M{x} {y}h{wide}v{tall}h-{wide}")
    body = "".join(f'<path fill="{colour}" d="{"".join(path)}"/>' for colour, path in paths.items())
    return f'<g transform="scale({cell_w:.6g} {cell_h:.6g})">{body}</g>'


def _runs(drawn: Heatmap) -> Iterator[tuple[int, int, int, int, str]]:
    """(x, y, wide, tall, colour): along the second, which upwards is alike, or along the time of a core."""
    by_core = drawn.cores is not None
    values = drawn.shades.T if by_core else drawn.shades[:, ::-1]
    scale = colours.HeatScale.of(drawn.shades.ravel().tolist())
    for line, shades in enumerate(values.tolist()):
        at = 0
        for colour, cells in groupby(scale.colour(value) for value in shades):
            run = sum(1 for _ in cells)
            if colour is not None:
                yield (at, line, run, 1, colour) if by_core else (line, at, 1, run, colour)
            at += run


def _blind(drawn: Heatmap, cell_w: float, tall: float) -> str:
    """Spans that were not recorded: grey, because blind is not idle."""
    scale = cell_w / drawn.column_us
    return "".join(
        f'<rect class="b" x="{(start - drawn.start_us) * scale:.2f}" y="0" width="{(end - start) * scale:.2f}" '
        f'height="{tall:.0f}"><title>not recorded</title></rect>'
        for start, end in drawn.blind
    )


def _axis(drawn: Heatmap, cell_w: float, tall: float, zone: tzinfo) -> str:
    every = max(1, -(-int(100 / cell_w) // 10) * 10) if drawn.columns > 10 else 5
    marks = []
    for column in range(0, drawn.columns, every):
        at = datetime.fromtimestamp((drawn.start_us + column * drawn.column_us) / 1e6, zone)
        marks.append(f'<text class="n" x="{column * cell_w:.1f}" y="{tall + 16:.0f}">{at:%H:%M:%S}</text>')
    return "".join(marks)


def _rows(drawn: Heatmap, cell_h: float) -> str:
    tall = drawn.rows * cell_h
    if drawn.cores is None:
        labels = [(f"{fraction:g} s", tall * (1 - fraction)) for fraction in (0, 0.5, 1)]
    else:
        every = max(1, int(14 / cell_h))
        labels = [(str(cpu), row * cell_h + 9) for row, cpu in enumerate(drawn.cores) if row % every == 0]
    return "".join(
        f'<text class="n" x="-6" y="{max(8.0, y):.0f}" text-anchor="end">{_xml(text)}</text>' for text, y in labels
    )


def _document(height: int, heading: str, line: str, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
        f"<style>{_STYLE}</style>"
        f'<text class="h" x="{_MARGIN}" y="18">{_xml(heading)}</text>'
        f'<text class="n" x="{_MARGIN}" y="34">{_xml(line)}</text>{body}</svg>\n'
    )
