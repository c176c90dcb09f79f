"""The GPUs in `top`: a strip of each where there are few, else all of them at this moment and a strip of the idlest.

The height of a cell is utilisation; a second that was not measured is a broken line, never a quiet one.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from zombiescope.cli.top.strips import ALARM, NOT_MEASURED, QUIET
from zombiescope.query.recent import GpuTick, Recent

MOST_STRIPS = 4
_LABEL = 11
_LEVEL = 24
_HEIGHTS = "▁▂▃▄▅▆▇█"
_COLOUR = "color(71)"


def gpu_lines(recent: Recent, width: int) -> list[Text]:
    """None where there is no GPU."""
    gpus = recent.gpus()
    if not gpus:
        return []
    space = max(1, width - _LABEL - _LEVEL)
    slots = {gpu: recent.gpu_slots(gpu, space) for gpu in gpus}
    if len(gpus) <= MOST_STRIPS:
        return [_strip_line(f"GPU {gpu}", slots[gpu], space, recent.gpu_states.get(gpu)) for gpu in gpus]
    row = _label("GPUs").append_text(_cells([slots[gpu][-1] if slots[gpu] else None for gpu in gpus]))
    bad = [gpu for gpu in gpus if (recent.gpu_states.get(gpu) or (None, "ok"))[1] not in ("ok", None)]
    if bad:
        row.append("  " + ", ".join(f"GPU {gpu} {recent.gpu_states[gpu][1]}" for gpu in bad[:4]), ALARM)
    idlest = min(gpus, key=lambda gpu: _mean(slots[gpu]))
    return [row, _strip_line(f"GPU {idlest}", slots[idlest], space, recent.gpu_states.get(idlest))]


def _label(name: str) -> Text:
    return Text().append(f" {name}".ljust(_LABEL), "bold")


def _strip_line(
    label: str, ticks: Sequence[GpuTick | None], space: int, known: tuple[str | None, str | None] | None
) -> Text:
    line = _label(label).append(" " * (space - len(ticks))).append_text(_cells(ticks))
    state = known[1] if known else None
    if state not in ("ok", None):
        return line.append(f"  {state}", ALARM)
    newest = ticks[-1] if ticks else None
    if newest is None or newest.utilisation is None:
        return line.append("     ?", NOT_MEASURED)
    power = "" if newest.power_w is None else f"  {newest.power_w} W"
    hot = next((tick.temperature_c for tick in reversed(ticks) if tick and tick.temperature_c is not None), None)
    return line.append(f"  {newest.utilisation:3d}%{power}" + ("" if hot is None else f"  {hot} °C"))


def _cells(ticks: Sequence[GpuTick | None]) -> Text:
    text = Text()
    for tick in ticks:
        if tick is None or tick.utilisation is None:
            text.append("╌", NOT_MEASURED)
        else:
            share = min(100, max(0, tick.utilisation)) / 100
            text.append(_HEIGHTS[min(7, int(share * 8))], QUIET if share < 0.03 else _COLOUR)
    return text


def _mean(ticks: Sequence[GpuTick | None]) -> float:
    known = [tick.utilisation for tick in ticks if tick is not None and tick.utilisation is not None]
    return sum(known) / len(known) if known else 101.0
