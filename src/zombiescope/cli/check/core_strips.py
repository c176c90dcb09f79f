"""The cores of a check: the mean, the worst cores below it, and on a large node every core as one character."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from zombiescope.cli.check.styles import NOT_MEASURED, STYLES
from zombiescope.cli.quantities import human_s
from zombiescope.cli.top.strips import heat_row, strip
from zombiescope.diagnosis.check.findings import inner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zombiescope.diagnosis.check.check import Check
    from zombiescope.diagnosis.check.cores import HeldCore
    from zombiescope.model.modes import ModesBusy
    from zombiescope.query.recent import CoreTick

_INDENT = 11
_NAMED = 3
_HELD_S = 1.0
_FEW = 4
"""So many cores have a line each; of more, the worst have, and all share a row."""
_WIDEST_STRIP = 40
_ALWAYS = {"user": "user", "system": "sys", "softirq": "soft"}
_SOMETIMES = {"irq": "irq", "steal": "steal", "iowait": "iowait"}
_WORTH_SAYING = 0.01
_PER_ROW = (256, 192, 128, 96, 64, 48, 32, 24, 16)


@dataclass(frozen=True, slots=True)
class Strips:
    """`spare` are places of lines that may go where there is too little room, one after the other."""

    lines: list[Text]
    spare: tuple[int, ...]


def strips(check: Check, width: int) -> Strips:
    seen = check.cores
    if not seen.cores:
        return Strips([Text("no core was measured", NOT_MEASURED)], ())
    few = len(seen.cores) <= _FEW
    shown = list(seen.cores) if few else seen.worst_first()[:_NAMED]
    label = max(8, *(len(f"core {one.core.cpu}") + 1 for one in shown))
    cells = len(seen.average_strip)
    stretch = max(1, min(_WIDEST_STRIP, (width - _INDENT - label) // 4) // max(1, cells))
    modes = _modes_shown([seen.aggregate, *(one.core.modes for one in shown)])
    made = [_row("average", label, seen.average_strip, stretch, seen.aggregate, modes)]
    made += [_core(one, label, stretch, modes, width - _INDENT) for one in shown]
    if few:
        return Strips([*made, _stalls(check)], (len(made),))
    # The mean, the worst core and the row of all stay; the stalls, which are findings too, and the next worst go.
    made += [_stalls(check), *_everyone(check, width)]
    return Strips(made, (4, 3, 2, 2))


def _modes_shown(rows: Sequence[ModesBusy]) -> dict[str, str]:
    """Those that every row has, and those that any of them has something of."""
    some = {mode for mode in _SOMETIMES if any((getattr(row, mode) or 0) >= _WORTH_SAYING for row in rows)}
    return _ALWAYS | {mode: short for mode, short in _SOMETIMES.items() if mode in some}


def _row(
    name: str, label: int, cells: Sequence[CoreTick | None], stretch: int, modes: ModesBusy, names: dict[str, str]
) -> Text:
    text = Text(name.ljust(label)).append_text(_strip(cells, stretch))
    busy = "?" if modes.busy is None else f"{modes.busy * 100:.0f}%"
    text.append(f"{busy:>6} ", "bold")
    for mode, short in names.items():
        ratio = _ratio(modes, mode)
        shown = "?" if ratio is None else f"{ratio * 100:.0f}"
        text.append(f" {short} ", "dim").append(f"{shown:>3}", "dim" if shown == "0" else "")
    text.no_wrap = True
    return text


def _ratio(modes: ModesBusy, mode: str) -> float | None:
    """User time with what runs at a lower priority, as in the strips."""
    ratio: float | None = getattr(modes, mode)
    return ratio if mode != "user" or ratio is None else ratio + (modes.nice or 0.0)


def _strip(cells: Sequence[CoreTick | None], stretch: int) -> Text:
    """A cell a second, each as wide as there is room for."""
    wide = [cell for cell in cells for _ in range(stretch)]
    return strip(wide, len(wide))


def _core(one: HeldCore, label: int, stretch: int, names: dict[str, str], room: int) -> Text:
    """What does not fit whole is left out: the verdict says who, and where."""
    text = _row(f"core {one.core.cpu}", label, one.strip, stretch, one.core.modes, names)
    held_s = one.core.longest_saturation_s or 0.0
    more = []
    if held_s >= _HELD_S:
        text.stylize(f"bold {STYLES['critical']}", 0, label - 1)
        more.append(Text(f"  held {human_s(held_s)}", STYLES["critical"]))
    if one.hog is not None and one.hog.actor.comm:
        path = inner(one.hog.path)
        more.append(Text(f"  {one.hog.actor.comm}", "bold" if held_s >= _HELD_S else "dim"))
        more += [Text(f" in {path[-1]}", "dim")] if path else []
    for part in more:
        if text.cell_len + part.cell_len > room:
            break
        text.append_text(part)
    return text


def _everyone(check: Check, width: int) -> list[Text]:
    """Every core in its worst second, so that a second lost among many is seen."""
    cores = check.cores.cores
    digits = len(str(cores[-1].core.cpu))
    per_row = next((count for count in _PER_ROW if count <= width - _INDENT - digits - 1), 8)
    rows = []
    for first in range(0, len(cores), per_row):
        some = cores[first : first + per_row]
        row = (
            Text()
            .append(f"{some[0].core.cpu:>{digits}} ", "dim")
            .append_text(heat_row(_worst_cell(one.strip) for one in some))
        )
        row.no_wrap = True
        rows.append(row)
    caption = f"all {len(cores)}, each in its worst second:"
    return [Text(caption, "dim"), *rows]


def _worst_cell(cells: Sequence[CoreTick | None]) -> CoreTick | None:
    known = [cell for cell in cells if cell is not None]
    return max(known, key=lambda cell: (cell.kernel, cell.busy), default=None)


def _stalls(check: Check) -> Text:
    if not check.sources["stack samples"]:
        return _whole("stalls, and who held a core, cannot be seen without stack samples", NOT_MEASURED)
    if not check.stalls:
        return _whole("no stall of 100 ms or more", "dim")
    said = [
        f"{'all cores' if one.cpu is None else f'core {one.cpu}'} {human_s(one.seconds)} ({_KINDS[one.kind]})"
        for one in check.stalls[:4]
    ]
    more = f", and {len(check.stalls) - 4} more" if len(check.stalls) > 4 else ""
    return _whole(f"stalls: {', '.join(said)}{more}", "")


def _whole(text: str, style: str) -> Text:
    return Text(text, style, no_wrap=True)


_KINDS = {"no_samples": "interrupts off", "ksoftirqd": "ksoftirqd waited", "held": "held in the kernel"}
