"""One frame of `top` as lines of text that fit a terminal of any size.

From above: who and when; the average beside the hottest core, so that one sees what the average hides; the
cores; what else matters (panels.py); the keys. When the terminal is low, cores give way to panels only down
to a few rows, and then the panels give way, the least important first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from rich.text import Text

from zombiescope.cli.terminal import one_line
from zombiescope.cli.top import panels
from zombiescope.cli.top.strips import (
    LEVEL_WIDTH,
    NOT_MEASURED,
    SHORT,
    colour,
    heat_row,
    level,
    strip,
    tall_strip,
)
from zombiescope.cli.window import clock
from zombiescope.query.ran_lately import RanProcess
from zombiescope.query.recent import CoreTick, Hottest, NodeTick, Recent, heat
from zombiescope.query.worst import Worst
from zombiescope.store.thresholds import SATURATED_RATIO

_NARROWEST_STRIP = 12
_GOOD_STRIP = 20
_TALLEST_STRIP = 4
_HEAT_STEP = 0.5  # cores closer than this keep their order, or quiet ones would trade places every second


@dataclass(frozen=True, slots=True)
class View:
    """Everything that a frame shows."""

    node: dict[str, Any]
    recent: Recent
    zone: tzinfo
    state: str
    """live, paused, or why it stands still."""
    note: str | None = None
    worst: Worst | None = None
    zombies: str | None = None
    """What the memory cgroups cost: harmless, watch or costly."""
    ran: Sequence[RanProcess] = ()
    """Who ran most in the last seconds."""
    by_heat: bool | None = None
    """None: by heat when not all cores fit, else by number."""
    help: bool = False


def compose(view: View, width: int, height: int) -> list[Text]:
    """Exactly `height` lines of at most `width` columns."""
    head = [_title(view, width), *_contrast(view, width)]
    foot = _keys(view, width)
    room = max(0, height - len(head) - 1)
    wanted = _rows_wanted(view, width, height)
    below = panels.help_lines(width) if view.help else panels.lines(view, width, room, wanted)
    body = [*_cores(view, width, room - len(below)), *below][:room]
    body += [Text("")] * (room - len(body))
    lines = [one_line(line) for line in [*head, *body, foot][:height]]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines


# --- the top
# ---------------------------------------------------------------------------------------------------------


def _title(view: View, width: int) -> Text:
    online = len(view.recent.ticks[-1].cores) if view.recent.ticks else None
    left = Text.assemble(
        (" zombiescope ", "bold reverse"),
        (f" {view.node.get('node', '?')}", "bold"),
        (f"  {view.node.get('kernel') or '?'}  {online if online is not None else '?'} cores", "dim"),
    )
    newest_us = view.recent.newest_us
    time = clock(newest_us, view.zone) if newest_us is not None else "--:--:--"
    styles = {"live": "bold green"}
    right = Text.assemble((f"{time}  ", ""), (f"● {view.state} ", styles.get(view.state, f"bold {NOT_MEASURED}")))
    return _apart(left, right, width)


def _contrast(view: View, width: int) -> list[Text]:
    """The average, the hottest core under it, and a sentence that says what the first hides of the second."""
    hottest = view.recent.hottest()
    if hottest is None:
        return [Text(""), Text().append(" waiting for the first tick", NOT_MEASURED), Text("")]
    label = max(len(" average "), len(f" core {hottest.cpu} "))
    space = max(1, width - label - LEVEL_WIDTH)
    slots = view.recent.slots(space)
    averages = [tick.average() if tick is not None else None for tick in slots]
    ticks = [tick.cores.get(hottest.cpu) if tick is not None else None for tick in slots]
    sentence = Text(" " * label).append_text(_sentence(averages[-1], hottest))
    seconds = view.recent.ticks[-1].interval_us / 1e6
    return [
        Text(""),
        Text.assemble((" average".ljust(label), "bold"), strip(averages, space), level(averages[-1])),
        Text.assemble((f" core {hottest.cpu}".ljust(label), "bold"), strip(ticks, space), level(hottest.tick)),
        _apart(sentence, Text().append(f"1 cell = {max(1.0, round(seconds, 1)):g} s ", "dim"), width),
        Text(""),
    ]


def _sentence(average: CoreTick | None, hottest: Hottest) -> Text:
    core, cpu = hottest.tick, hottest.cpu
    if core.kernel < SATURATED_RATIO:
        most = f"at most {core.kernel * 100:.0f}% of core {cpu}"
        return Text().append(f"no core is starved now: {most}", "dim")
    mean = "?" if average is None else f"{average.busy * 100:.0f}%"
    share = f"{core.kernel * 100:.0f}% {core.mode()}"
    lost = f"core {cpu} at {share} for the last {hottest.saturated_s:.0f} s"
    return Text.assemble((lost, f"bold {colour(core.mode())}"), f" · node average {mean}")


# --- the cores
# -------------------------------------------------------------------------------------------------------


def _rows_wanted(view: View, width: int, height: int) -> int:
    """Rows that show every core with a strip, or the whole node in heat rows and some of the hottest
    cores."""
    cpus = view.recent.cpus()
    if not cpus:
        return 0
    most = max(1, width // (_label(cpus) + _NARROWEST_STRIP + LEVEL_WIDTH))
    least = min(-(-len(cpus) // most), len(_heat_rows(view, cpus, width)) + 5)
    return max(least, min(len(cpus) * _TALLEST_STRIP, height // 3)) + 1


def _cores(view: View, width: int, rows: int) -> list[Text]:
    cpus = view.recent.cpus()
    if not cpus or rows < 2:
        return []
    label = _label(cpus)
    columns = _columns_for_all(len(cpus), width, rows - 1, label)
    if columns is not None:
        order = _by_heat(view, cpus) if view.by_heat else cpus
        return [*_grid(view, order, width, rows - 1, columns), Text("")]
    all_now = _heat_rows(view, cpus, width)[: rows - 2]
    if rows - len(all_now) > 8:
        all_now.append(Text(""))
    rows_left = rows - len(all_now) - 2
    columns = max(1, width // (label + _GOOD_STRIP + LEVEL_WIDTH))
    shown = (cpus if view.by_heat is False else _by_heat(view, cpus))[: columns * max(0, rows_left)]
    which = "the first" if view.by_heat is False else "the hottest"
    caption = f" {len(cpus)} cores now" + (f"; below: {which}" if shown else "")
    return [Text().append(caption, "dim"), *all_now, *_grid(view, shown, width, rows_left, columns), Text("")]


def _label(cpus: Sequence[int]) -> int:
    return max(4, len(str(cpus[-1])) + 2)


def _columns_for_all(cores: int, width: int, rows: int, label: int) -> int | None:
    """The fewest columns in which every core has a strip; None when they do not fit."""
    most = max(1, width // (label + _NARROWEST_STRIP + LEVEL_WIDTH))
    needed = -(-cores // rows)
    return needed if needed <= most else None


def _by_heat(view: View, cpus: Sequence[int]) -> list[int]:
    hot = heat(view.recent.slots(60))
    return sorted(cpus, key=lambda cpu: (-int(hot.get(cpu, 0.0) / _HEAT_STEP), cpu))


def _heat_rows(view: View, cpus: Sequence[int], width: int) -> list[Text]:
    """One character per core, a round number of them a row: 64, 96, 128 ..."""
    label = _label(cpus)
    per_row = next((n for n in (256, 192, 128, 96, 64, 48, 32, 24, 16) if n <= width - label - 1), 8)
    newest = view.recent.ticks[-1].cores
    rows = []
    for first in range(0, len(cpus), per_row):
        some = cpus[first : first + per_row]
        rows.append(
            Text().append(f"{some[0]:>{label - 1}} ", "dim").append_text(heat_row(newest.get(cpu) for cpu in some))
        )
    return rows


def _grid(view: View, cpus: Sequence[int], width: int, rows: int, columns: int) -> list[Text]:
    """Strips in columns, read downwards; where there are few cores they grow tall."""
    if rows < 1 or not cpus:
        return []
    down = -(-len(cpus) // columns)
    tall = max(1, min(_TALLEST_STRIP, rows // down))
    label = max(len(str(cpu)) for cpu in cpus) + 2
    space = width // columns - label - LEVEL_WIDTH
    slots = view.recent.slots(max(1, space))
    lines = []
    for row in range(down):
        band = [Text() for _ in range(tall)]
        for cpu in cpus[row::down]:
            for line, part in zip(band, _core_lines(cpu, slots, space, label, tall), strict=True):
                line.append_text(part)
        lines.extend(band)
    return lines


def _core_lines(cpu: int, slots: Sequence[NodeTick | None], space: int, label: int, tall: int) -> list[Text]:
    ticks = [tick.cores.get(cpu) if tick is not None else None for tick in slots]
    *above, base = tall_strip(ticks, space, tall)
    empty = [Text(" " * label).append_text(line).append(" " * LEVEL_WIDTH) for line in above]
    return [*empty, Text.assemble((f"{cpu:>{label - 1}} ", "dim"), base, level(ticks[-1] if ticks else None))]


# --- the bottom
# ------------------------------------------------------------------------------------------------------


def _keys(view: View, width: int) -> Text:
    order = {None: "auto", True: "heat", False: "number"}[view.by_heat]
    left = Text().append(f" q quit  space pause  s sort: {order}  ? help", "dim")
    right = Text()
    for mode in ("system", "softirq", "irq", "user", "steal"):
        right.append("█ ", colour(mode)).append(f"{SHORT[mode]} ", "dim")
    return _apart(left, right, width)


def _apart(left: Text, right: Text, width: int) -> Text:
    space = width - left.cell_len - right.cell_len
    if space < 1:
        return left
    return left.append(" " * space).append_text(right)
