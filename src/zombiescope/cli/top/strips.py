"""Cores as block characters: the height of a cell is how busy the core was, its colour what it was busy with.

A quiet core is a dim line, so that one red strip among a hundred is the thing one sees. A cell that was not
measured is a broken line, never a quiet one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from zombiescope.query.recent import CoreTick
from zombiescope.store.thresholds import SATURATED_RATIO

_HEIGHTS = "▁▂▃▄▅▆▇"
_FULL = "█"  # only for a core that is saturated: below that, a gap separates a strip from the one above it
_QUIET_RATIO = 0.03
_LOUD_RATIO = 0.5

# Quiet and loud shade of each mode; 256 colours that hold on dark and on light ground.
_SHADES = {
    "system": ("color(131)", "color(196)"),
    "softirq": ("color(133)", "color(201)"),
    "irq": ("color(137)", "color(208)"),
    "user": ("color(65)", "color(71)"),
    "steal": ("color(136)", "color(220)"),
    "iowait": ("color(67)", "color(67)"),
}
_KERNEL = ("system", "softirq", "irq")
_OTHER = ("user", "steal")
QUIET = "color(240)"
NOT_MEASURED = "color(178)"
ALARM = "bold color(196)"
CAUTION = "color(178)"
SHORT = {"system": "sys", "softirq": "soft", "irq": "irq", "user": "user", "steal": "steal"}
LEVEL_WIDTH = 13


def cell(core: CoreTick | None) -> tuple[str, str]:
    """The character and the style of one core in one tick."""
    if core is None:
        return "╌", NOT_MEASURED
    busy = core.busy
    if busy < _QUIET_RATIO:
        return "▁", _SHADES["iowait"][0] if core.iowait >= _LOUD_RATIO else QUIET
    character = _FULL if busy >= SATURATED_RATIO else _HEIGHTS[min(6, int(busy * 7.5))]
    if core.kernel >= SATURATED_RATIO:
        return character, f"bold {colour(core.mode())}"
    return character, _shade(core, core.mode())


def colour(mode: str) -> str:
    """The loud shade of a mode."""
    return _SHADES[mode][1]


def strip(cores: Sequence[CoreTick | None], width: int) -> Text:
    """The newest `width` ticks of a core, the newest at the right; blank before the recording began."""
    shown = cores[-width:] if width > 0 else ()
    text = Text(" " * (width - len(shown)))
    return _append_runs(text, (cell(core) for core in shown))


def tall_strip(cores: Sequence[CoreTick | None], width: int, rows: int) -> list[Text]:
    """A strip of several rows, uppermost first; with that much room the modes stand on each other, kernel
    below."""
    if rows == 1:
        return [strip(cores, width)]
    shown = cores[-width:] if width > 0 else ()
    blank = " " * (width - len(shown))
    return [_append_runs(Text(blank), (_tall_cell(core, row, rows) for core in shown)) for row in reversed(range(rows))]


def _tall_cell(core: CoreTick | None, row: int, rows: int) -> tuple[str, str]:
    """The part of a tall strip that lies between row/rows and (row+1)/rows of full height."""
    if core is None or core.busy < _QUIET_RATIO:
        return cell(core) if row == 0 else (" ", "")
    filled = _eighths(core.busy * rows - row)
    if filled == 0:
        return ("▁", _shade(core, core.mode())) if row == 0 else (" ", "")
    kernel = min(filled, _eighths(core.kernel * rows - row))
    if row == rows - 1 and core.busy < SATURATED_RATIO:
        filled = min(filled, 7)
    if filled == 8 and 0 < kernel < 8:
        return _HEIGHTS[kernel - 1], f"{_shade(core, *_KERNEL)} on {_shade(core, *_OTHER)}"
    return (_HEIGHTS + _FULL)[filled - 1], _shade(core, *(_KERNEL if kernel * 2 > filled else _OTHER))


def _eighths(height: float) -> int:
    return round(min(1.0, max(0.0, height)) * 8)


def _shade(core: CoreTick, *modes: str) -> str:
    """The colour of the strongest of some modes; loud when that mode alone is."""
    mode = max(modes, key=lambda mode: float(getattr(core, mode)))
    return _SHADES[mode][getattr(core, mode) >= _LOUD_RATIO]


def heat_row(cores: Iterable[CoreTick | None]) -> Text:
    """One character per core, side by side: the whole node at one moment."""
    return _append_runs(Text(), (cell(core) for core in cores))


def _append_runs(text: Text, cells: Iterable[tuple[str, str]]) -> Text:
    """Neighbours of one style go as one piece: over ssh, escape sequences are most of a frame."""
    run, style = "", ""
    for character, cell_style in cells:
        if cell_style != style and run:
            text.append(run, style)
            run = ""
        run, style = run + character, cell_style
    return text.append(run, style)


def level(core: CoreTick | None) -> Text:
    """A tick in words, LEVEL_WIDTH columns wide: " 100% sys"."""
    if core is None:
        return Text().append("    ?".ljust(LEVEL_WIDTH), NOT_MEASURED)
    mode = core.mode()
    text = f"{core.busy * 100:4.0f}% {SHORT[mode] if core.busy >= _QUIET_RATIO else ''}".ljust(LEVEL_WIDTH)
    if core.kernel >= SATURATED_RATIO:
        return Text().append(text, f"bold {colour(mode)}")
    return Text().append(text, "" if core.busy >= _LOUD_RATIO else "dim")
