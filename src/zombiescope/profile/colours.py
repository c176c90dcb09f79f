"""Colours of frames: by kind first, so that kernel and user differ at a glance, then by module, and a shade by
name. They follow from the names alone, so a function has the same colour in every window, recording and output."""

from __future__ import annotations

from colorsys import hls_to_rgb
from zlib import crc32

from zombiescope.profile.stacks import Function

_HUES = {"kernel": (28, 44), "module": (0, 18), "bpf": (318, 338), "jit": (100, 140), "user": (165, 265)}
"""Degrees of the colour circle for each kind; the module chooses one within."""
_GREY = "#b4b4b4"
ROOT = "#c8c4bc"

HEAT = ("#fff3e0", "#ffd699", "#ffb04d", "#fb8528", "#e85a1a", "#c7350f", "#98180d", "#5f0a0a")
"""From little to much; nothing at all is the background."""


def of(function: Function) -> str:
    """The colour of a frame as #rrggbb, light enough for black text."""
    if function.kind == "root":
        return ROOT
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


def of_count(count: int, most: int) -> str | None:
    """The colour of a cell in a heat map, or None where it is empty."""
    if count <= 0 or most <= 0:
        return None
    return HEAT[min(len(HEAT) - 1, count * len(HEAT) // (most + 1))]


def _hex(hue: float, lightness: float, saturation: float) -> str:
    red, green, blue = hls_to_rgb(hue / 360, lightness, saturation)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"
