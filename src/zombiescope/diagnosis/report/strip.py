"""Each core around an incident as one strip of colour, the node's average drawn over them, and what happened as marks.

The picture is the argument: one line is red for six seconds, and the average does not move.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import ceil

import numpy as np

from zombiescope.diagnosis.core_grid import SECOND_US, CoreGrid
from zombiescope.diagnosis.incident import Symptom
from zombiescope.diagnosis.spans import runs

WIDTH, LEFT, TOP = 1160, 54, 50
LEVELS, LEVEL_TALL, LETTER_WIDE = 3, 13, 6.7
"""Names of events that would lie over one another stand one above the other."""
MAX_ROWS = 192
COLOURS = {"system": "#d7301f", "softirq": "#7b3294", "irq": "#c51b8a", "user": "#2b8cbe", "steal": "#636363"}
# By class: the other pictures of the page have a style for all text, and the last one on the page would count.
_STYLE = ".strip text{font:11px ui-monospace,monospace;fill:currentColor}.strip .f{opacity:.7}"


def strip(cores: CoreGrid, symptoms: Sequence[Symptom], clock: Callable[[int], str]) -> str:
    """One SVG element."""
    rows = _rows(cores)
    tall = max(2.0, min(16.0, 420 / max(1, len(rows))))
    wide = (WIDTH - LEFT) / cores.seconds
    height = TOP + len(rows) * tall + 54
    parts = [
        f'<svg class="strip" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="what each core did, second by second"><style>{_STYLE}</style>'
    ]
    parts += _cells(cores, rows, wide, tall)
    parts += _labels(cores, rows, tall)
    parts.append(_average(cores, wide, len(rows) * tall))
    parts += _marks(cores, symptoms, wide, len(rows) * tall, clock)
    parts += _axis(cores, wide, TOP + len(rows) * tall, clock)
    parts.append(_legend(height))
    return "".join(parts) + "</svg>"


def _rows(cores: CoreGrid) -> list[int]:
    """Every core; on very large nodes the busiest in the kernel, in their own order."""
    if len(cores.cpus) <= MAX_ROWS:
        return list(range(len(cores.cpus)))
    hottest = np.argsort(-np.nan_to_num(cores.kernel).max(axis=1), kind="stable")[:MAX_ROWS]
    return sorted(hottest.tolist())


def _cells(cores: CoreGrid, rows: list[int], wide: float, tall: float) -> list[str]:
    parts = []
    for mode, colour in COLOURS.items():
        ratios = np.nan_to_num(cores.ratios[mode])
        for line, row in enumerate(rows):
            for second in np.flatnonzero(ratios[row] >= 0.03).tolist():
                if mode != _dominant(cores, row, second):
                    continue
                parts.append(
                    f'<rect x="{LEFT + second * wide:.2f}" y="{TOP + line * tall:.2f}" width="{wide + 0.3:.2f}" '
                    f'height="{tall:.2f}" fill="{colour}" fill-opacity="{0.12 + 0.88 * ratios[row, second]:.2f}"/>'
                )
    return parts


def _dominant(cores: CoreGrid, row: int, second: int) -> str:
    return max(COLOURS, key=lambda mode: np.nan_to_num(cores.ratios[mode][row, second]))


def _labels(cores: CoreGrid, rows: list[int], tall: float) -> list[str]:
    every = ceil(12 / tall)
    return [
        f'<text class="f" x="{LEFT - 6}" y="{TOP + line * tall + min(tall, 11):.1f}" text-anchor="end">'
        f"{cores.cpus[row]}</text>"
        for line, row in enumerate(rows)
        if line % every == 0
    ]


def _average(cores: CoreGrid, wide: float, height: float) -> str:
    """A line for each run of measured seconds: where nothing was measured there is none."""
    busy = cores.node_busy()
    parts = ["<g><title>the line is the average of all cores</title>"]
    for first, last in runs(cores.measured.sum(axis=0) > 0):
        points = " ".join(
            f"{LEFT + (second + 0.5) * wide:.1f},{TOP + height * (1 - busy[second]):.1f}"
            for second in range(first, last)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.6"/>')
    return "".join(parts) + "</g>"


def _marks(
    cores: CoreGrid, symptoms: Sequence[Symptom], wide: float, height: float, clock: Callable[[int], str]
) -> list[str]:
    parts = []
    ends = [0.0] * LEVELS
    for symptom in sorted(symptoms, key=lambda symptom: symptom.from_us):
        if symptom.kind != "event":
            continue
        x = LEFT + (symptom.from_us - cores.start_us) / SECOND_US * wide
        kind = str(symptom.facts.get("event"))
        label = min(x + 4, WIDTH - len(kind) * LETTER_WIDE)
        level = next((level for level in range(LEVELS) if ends[level] <= label), LEVELS)
        y = TOP - 10 - level * LEVEL_TALL
        top = y - 8 if level < LEVELS else TOP - 8
        parts.append(
            f"<g><title>{escape(f'{clock(symptom.from_us)} {symptom.text}')}</title>"
            f'<path d="M{x:.1f} {top}V{TOP + height:.1f}" stroke="#e6a700" stroke-width="2"/>'
        )
        if level < LEVELS:  # with more than that at one moment, the rest is told by the pointer
            ends[level] = label + (len(kind) + 1) * LETTER_WIDE
            parts.append(f'<text x="{label:.1f}" y="{y}">{escape(kind)}</text>')
        parts.append("</g>")
    return parts


def _axis(cores: CoreGrid, wide: float, y: float, clock: Callable[[int], str]) -> list[str]:
    every = max(1, round(110 / wide))
    return [
        f'<text class="f" x="{LEFT + second * wide:.1f}" y="{y + 15:.0f}">{clock(cores.at_us(second))}</text>'
        for second in range(0, cores.seconds, every)
    ]


def _legend(height: float) -> str:
    parts, x = [], LEFT
    for mode, colour in COLOURS.items():
        parts.append(
            f'<rect x="{x}" y="{height - 16:.0f}" width="11" height="11" fill="{colour}"/>'
            f'<text x="{x + 16}" y="{height - 6:.0f}">{mode}</text>'
        )
        x += 90
    parts.append(f'<text class="f" x="{x}" y="{height - 6:.0f}">the line is the average of all cores</text>')
    return "".join(parts)
