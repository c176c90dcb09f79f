"""Each core around an incident as one strip of colour, the node's average drawn over them, and what happened as marks.

The picture is the argument: one line is red for six seconds, and the average does not move.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from zombiescope.diagnosis.core_grid import SECOND_US, CoreGrid
from zombiescope.diagnosis.incident import Symptom

WIDTH, LEFT, TOP = 1160, 54, 26
MAX_ROWS = 192
COLOURS = {"system": "#d7301f", "softirq": "#7b3294", "irq": "#c51b8a", "user": "#2b8cbe", "steal": "#636363"}
_STYLE = "text{font:11px ui-monospace,monospace;fill:currentColor}.f{opacity:.7}"


def strip(cores: CoreGrid, symptoms: Sequence[Symptom], clock: Callable[[int], str]) -> str:
    """One SVG element."""
    rows = _rows(cores)
    tall = max(2.0, min(16.0, 420 / max(1, len(rows))))
    wide = (WIDTH - LEFT) / cores.seconds
    height = TOP + len(rows) * tall + 54
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
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
    every = max(1, int(13 / tall))
    return [
        f'<text class="f" x="{LEFT - 6}" y="{TOP + line * tall + min(tall, 11):.1f}" text-anchor="end">'
        f"{cores.cpus[row]}</text>"
        for line, row in enumerate(rows)
        if line % every == 0
    ]


def _average(cores: CoreGrid, wide: float, height: float) -> str:
    busy = cores.node_busy()
    points = " ".join(
        f"{LEFT + (second + 0.5) * wide:.1f},{TOP + height * (1 - ratio):.1f}" for second, ratio in enumerate(busy)
    )
    return (
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.6"/>'
        f"<title>the line is the average of all cores</title>"
    )


def _marks(
    cores: CoreGrid, symptoms: Sequence[Symptom], wide: float, height: float, clock: Callable[[int], str]
) -> list[str]:
    parts = []
    for symptom in symptoms:
        if symptom.kind != "event":
            continue
        x = LEFT + (symptom.from_us - cores.start_us) / SECOND_US * wide
        kind = str(symptom.facts.get("event"))
        parts.append(
            f"<g><title>{escape(f'{clock(symptom.from_us)} {symptom.text}')}</title>"
            f'<path d="M{x:.1f} {TOP - 8}V{TOP + height:.1f}" stroke="#e6a700" stroke-width="2"/>'
            f'<text x="{min(x + 4, WIDTH - 150):.1f}" y="{TOP - 10}">{escape(kind)}</text></g>'
        )
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
