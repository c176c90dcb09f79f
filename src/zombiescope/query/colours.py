"""Colours of frames: by kind first, so that kernel and user differ at a glance, then by module, and a shade by
name. They follow from the names alone, so a function has the same colour in every window, recording and output."""

from __future__ import annotations

from collections.abc import Iterable
from colorsys import hls_to_rgb
from dataclasses import dataclass
from math import log
from zlib import crc32

from zombiescope.query.stacks import Function

_HUES = {"kernel": (28, 44), "module": (0, 18), "bpf": (318, 338), "jit": (100, 140), "python": (48, 66),
         "user": (165, 265)}  # fmt: skip
"""Degrees of the colour circle for each kind; the module chooses one within."""
_GREY = "#b4b4b4"
ROOT = "#c8c4bc"

HEAT = ("#fff3e0", "#ffd699", "#ffb04d", "#fb8528", "#e85a1a", "#c7350f", "#98180d", "#5f0a0a")
"""From little to much; nothing at all is the background."""

DENSE = 0.3
"""Of the most that a cell has: with at least so much in nearly every cell there is no idle ground to stand out from."""
USUAL_LEVEL = 0.45
LEAST_RANGE = 0.3
"""Cells that differ by less than this part of the most do not use all colours, or noise would look like structure."""


def of(function: Function) -> str:
    """The colour of a frame as #rrggbb, light enough for black text."""
    if function.kind == "root":
        return ROOT
    if function.kind == "owner":
        return _hex(crc32(function.name.encode()) % 360, 0.8, 0.28)
    if function.kind not in _HUES:
        return _GREY
    low, high = _HUES[function.kind]
    hue = low + crc32((function.module or "").encode()) % (high - low)
    shade = crc32(function.name.encode()) % 16
    return _hex(hue, 0.68 + shade / 100, 0.72)


def of_delta(delta: float, width: float) -> str:
    """Red grew, blue shrank, white stayed; the strength is the change as a part of the frame."""
    strength = min(1.0, abs(delta) / (2 * width)) if width else 0.0
    if strength < 0.005:
        return "#f2f2f2"
    return _hex(8 if delta > 0 else 212, 0.93 - 0.35 * strength, 0.85)


@dataclass(frozen=True, slots=True)
class HeatScale:
    """From counts to colours, made for one picture; the page's `auto` is the same (ui/src/heatmap/palette.ts).

    Mostly idle: from one sample to most, by the logarithm, so that a single one stands out. Where nearly every cell
    has as many as the next, that would be a wall of one colour: there the usual count has the middle of the scale,
    what is below it is paler, and the rest of the scale is for what is above.
    """

    most: float
    usual: float
    """Of nearly every cell, at least so many; 0 in a picture that is mostly idle."""

    @classmethod
    def of(cls, values: Iterable[float]) -> HeatScale:
        known = sorted(value for value in values if value > 0)
        if not known:
            return cls(0.0, 0.0)
        most, usual = known[-1], known[len(known) // 50]
        return cls(most, usual if usual >= DENSE * most else 0.0)

    def level(self, value: float) -> float:
        """Between little (0) and much (1)."""
        if value <= 0 or self.most <= 0:
            return 0.0
        if self.usual:
            floor = USUAL_LEVEL * self.usual / self.most
            if value < self.usual:
                return floor * value / self.usual
            above = (value - self.usual) / max(self.most - self.usual, LEAST_RANGE * self.most)
            return min(1.0, floor + (1 - floor) * above)
        if self.most <= 1:
            return 1.0
        return min(1.0, max(0.0, log(max(1.0, value)) / log(self.most)))

    def colour(self, value: float) -> str | None:
        """None where the cell is empty."""
        return HEAT[min(len(HEAT) - 1, int(self.level(value) * len(HEAT)))] if value > 0 else None


def _hex(hue: float, lightness: float, saturation: float) -> str:
    red, green, blue = hls_to_rgb(hue / 360, lightness, saturation)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"
