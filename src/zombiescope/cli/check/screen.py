"""The page of a check, read from above: who and when, the verdict, what else was found, and a panel per subject.

On a terminal it is one screen: what does not fit gives way, the least important first, and --json has it all. Into a
pipe or a file everything is printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.text import Text

from zombiescope.cli.check.panels import Panel, panels
from zombiescope.cli.check.styles import MARKS, NOT_MEASURED, STYLES, WORDS
from zombiescope.cli.terminal import one_line
from zombiescope.cli.window import clock, zone_of
from zombiescope.diagnosis.check.check import verdict

if TYPE_CHECKING:
    from datetime import tzinfo

    from rich.console import Console

    from zombiescope.audit.finding import Finding
    from zombiescope.diagnosis.check.check import Check

LABEL = 11
_NARROWEST = 40
_ALSO = 4


def show(check: Check, console: Console, *, utc: bool) -> None:
    zone = zone_of({}, utc)
    height = console.height - 1 if console.is_terminal else None
    for line in compose(check, zone, max(_NARROWEST, console.width), height):
        console.print(line, no_wrap=True, overflow="crop", crop=True)


def compose(check: Check, zone: tzinfo, width: int, height: int | None) -> list[Text]:
    """Lines of at most `width` columns; at most `height` of them, if that is given."""
    head = [_title(check, zone, width)]
    foot = [_foot(check, width)]
    said = _Block(_verdict(check, width), 1, 2)
    also = _Block(_also(check, width, None if height is None else _ALSO), 3, 0, marked=False)
    blocks = [_block(panel, width) for panel in panels(check, width)]
    room = None if height is None else height - len(head) - len(foot)
    _fit([said, also, *blocks], room, width)
    top = [*said.lines, *also.lines]
    rest = [line for block in blocks for line in block.lines]
    gap = [Text("")] if room is None or len(top) + len(rest) < room else []
    return [one_line(line) for line in (*head, *top, *gap, *rest, *foot)]


@dataclass(slots=True)
class _Block:
    """Lines that stand together. Those with the highest `gives_way` lose lines first, down to `least`: first the
    lines at the places in `spare`, then the last. A block that is `marked` says that something was left out."""

    lines: list[Text]
    gives_way: int
    least: int
    spare: list[int] = field(default_factory=list)
    marked: bool = True
    cut: bool = False

    def lose_a_line(self) -> None:
        self.lines.pop(self.spare.pop(0) if self.spare else -1)
        self.cut = True


def _block(panel: Panel, width: int) -> _Block:
    lines = _hanging(_gutter(panel.severity, panel.label), panel.texts, width)
    return _Block(lines, panel.gives_way, panel.least, list(panel.spare), marked=not panel.spare)


def _fit(blocks: list[_Block], room: int | None, width: int) -> None:
    """Lines are taken away one by one until the rest has room."""
    while room is not None and sum(len(block.lines) for block in blocks) > room:
        willing = [block for block in blocks if len(block.lines) > block.least]
        willing = willing or [block for block in blocks[1:] if block.lines]
        if not willing:
            return
        max(willing, key=lambda block: (block.gives_way, len(block.lines))).lose_a_line()
    for block in blocks:
        if block.cut and block.marked and block.lines:
            _mark_cut(block.lines[-1], width)


def _mark_cut(line: Text, width: int) -> None:
    line.truncate(width - 2)
    line.append(" …", "dim")


def _title(check: Check, zone: tzinfo, width: int) -> Text:
    left = Text.assemble(
        (" zombiescope check ", "bold reverse"),
        (f" {check.node}", "bold"),
        (f"  {check.kernel or '?'}  {len(check.cores.cores)} cores", "dim"),
    )
    right = Text(
        f"{clock(check.window.start_us, zone)}–{clock(check.window.end_us, zone)} ({check.window.seconds:.0f} s) ",
        "dim",
    )
    space = width - left.cell_len - right.cell_len
    if space < 1:
        left.truncate(width, overflow="ellipsis")
        return left
    return left.append(" " * space).append_text(right)


def _verdict(check: Check, width: int) -> list[Text]:
    said = verdict(check)
    blind = said.severity == "ok" and not all(check.sources.values())
    word, style = ("OK?", NOT_MEASURED) if blind else (WORDS[said.severity], STYLES[said.severity])
    label = Text(f" {word}".ljust(LABEL), f"bold {style}")
    return _hanging(label, [Text(said.text, "bold")], width)


def _also(check: Check, width: int, most: int | None) -> list[Text]:
    """The other findings of the window that are no mere notes, a line each."""
    first = verdict(check).finding
    others = [one for one in check.findings if one is not first and one.severity != "info"]
    shown = others if most is None else others[:most]
    lines = []
    for one in shown:
        line = Text(one.why)
        lines += _hanging(_gutter(one.severity, ""), [line], width) if most is None else [_one_line(one, line, width)]
    if len(shown) < len(others):
        lines.append(Text(" " * LABEL + f"and {len(others) - len(shown)} more: --json has them", "dim"))
    return lines


def _one_line(finding: Finding, text: Text, width: int) -> Text:
    line = _gutter(finding.severity, "").append_text(text)
    line.truncate(width, overflow="ellipsis")
    return line


def _gutter(severity: str | None, label: str) -> Text:
    """A mark that holds without colour, and the label of a panel."""
    style = STYLES.get(severity or "", "bold")
    return (
        Text()
        .append(MARKS.get(severity or "", " ") + " ", f"bold {style}")
        .append(label.ljust(LABEL - 2), f"bold {style}")
    )


def _hanging(label: Text, texts: Sequence[Text], width: int) -> list[Text]:
    """Texts below each other beside a label; what is longer than the line goes on in the next."""
    lines: list[Text] = []
    for text in texts:
        for part in _wrap(text, width - LABEL):
            start = Text() if lines else Text().append_text(label)
            lines.append((start if not lines else start.append(" " * LABEL)).append_text(part))
    return lines


def _wrap(text: Text, width: int) -> list[Text]:
    if text.cell_len <= width or text.no_wrap:
        cut = text.copy()
        cut.truncate(width, overflow="ellipsis")
        return [cut]
    from rich.console import Console

    wrapped = text.wrap(Console(width=width, color_system=None), width)
    for line in wrapped:
        line.rstrip()
    return list(wrapped)


def _foot(check: Check, width: int) -> Text:
    counts = {
        severity: sum(one.severity == severity for one in check.all_findings())
        for severity in ("critical", "warning", "info")
    }
    words = {"critical": ("critical", "critical"), "warning": ("warning", "warnings"), "info": ("note", "notes")}
    said = (f"{count} {words[severity][count > 1]}" for severity, count in counts.items() if count)
    found = ", ".join(said) or "no findings"
    cost = check.cost.cpu_ratio if check.cost else None
    own = "" if cost is None else f" · this check used {cost * 100:.1f}% of a core"
    line = Text(f" {found}{own} · --json has every figure", "dim")
    line.truncate(width, overflow="ellipsis")
    return line
