"""`zombiescope heatmap`: every sample of a window by the second and the part of the second, or by core."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.commands import drawing
from zombiescope.commands.drawing import Output
from zombiescope.commands.filters import FilterOptions
from zombiescope.commands.output import Json, console, examples, print_document
from zombiescope.commands.reading import Dir, Node, opened
from zombiescope.commands.window import Window, WindowOptions

if TYPE_CHECKING:
    from zombiescope.profile.heatmap import Heatmap
    from zombiescope.profile.selection import Selection

EXAMPLES = examples(
    "heatmap --last 5m",
    "heatmap --last 1h --by core",
    "heatmap --last 10m --comm kubelet --kernel",
    "heatmap incident.zscope -o incident.html    # to select in",
)


class By(StrEnum):
    SUBSECOND = "subsecond"
    CORE = "core"


def command(
    span: WindowOptions,
    filtered: FilterOptions,
    directory: Dir = None,
    by: Annotated[By, typer.Option("--by", help="Rows: parts of the second, or cores.")] = By.SUBSECOND,
    rows: Annotated[
        int, typer.Option("--rows", min=1, max=1000, metavar="N", help="Into how many parts a second is cut.")
    ] = 50,
    output: Output = None,
    node: Node = None,
    json_: Json = False,
) -> None:
    """When was the node busy: a sub-second heat map.

    A column is a second, a row a part of it: a stall of 40 ms shows in an hour of data.

    With --by core a row is a core. The HTML file also has the flame graph of whatever is selected in it.
    """
    kind = drawing.format_of(output) if output else None
    filters = filtered.chosen()
    with opened(directory, node) as recording:
        from zombiescope.documents.heatmap import document
        from zombiescope.documents.selected import selected

        window = span.choose(recording)
        selection = selected(recording, window, filters)
        title = drawing.heading(recording, window, filters)
        if output and kind == "html":
            from zombiescope.web import report

            opens = {"by": by.value}
            drawing.write_page(output, lambda: report.of_selection(selection, title, window, opens, rows=rows))
            if not json_:
                return
        drawn = _heatmap(selection, by, rows)
        if output and kind != "html":
            drawing.write(output, _picture(drawn, title, window, kind))
        if json_:
            print_document("heatmap", document(recording.name, by.value, drawn))
        elif not output:
            _print(drawn, title, window, selection)


def _heatmap(selection: Selection, by: By, rows: int) -> Heatmap:
    from zombiescope.profile import heatmap

    return heatmap.by_core(selection) if by is By.CORE else heatmap.subsecond(selection, rows)


def _picture(drawn: Heatmap, title: str, window: Window, kind: str | None) -> str:
    if kind == "svg":
        from zombiescope.profile import svg

        return svg.heatmap(drawn, title, window.zone)
    from zombiescope.profile import terminal

    lines = terminal.heatmap(drawn, drawing.TEXT_COLUMNS, window.zone)
    return f"{drawing.wrapped(title)}\n{terminal.plain(lines)}{_legend(drawn, drawing.TEXT_COLUMNS)}\n"


def _print(drawn: Heatmap, title: str, window: Window, selection: Selection) -> None:
    from zombiescope.profile import terminal

    out = console()
    out.print(title, style="bold")
    if not drawn.total:
        drawing.say_empty(selection.filters)
        return
    drawing.print_lines(terminal.heatmap(drawn, drawing.text_width(), window.zone))
    out.print(_legend(drawn, drawing.text_width()))


def _legend(drawn: Heatmap, width: int) -> str:
    from zombiescope.profile import terminal

    shown = terminal.narrowed(drawn, width)
    column = f"; a column is {shown.column_us / 1e6:g} s" if shown.column_us > drawn.column_us else ""
    blind = "; ? was not recorded" if drawn.blind else ""
    return f"{drawn.total:,} samples; darker is more{column}{blind}"
