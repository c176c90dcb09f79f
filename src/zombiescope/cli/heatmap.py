"""`zombiescope heatmap`: every sample of a window by the second and the part of the second, or by core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zombiescope.cli import picture
from zombiescope.cli.output import Json, console, examples, print_document
from zombiescope.cli.picture import Output
from zombiescope.cli.recording_argument import Dir, Node, opened
from zombiescope.questions.views import HeatmapQuestion

if TYPE_CHECKING:
    from pathlib import Path

    from zombiescope.documents.heatmap import HeatmapAnswer
    from zombiescope.query.heatmap import Heatmap

EXAMPLES = examples(
    "heatmap --last 5m",
    "heatmap --last 1h --by core",
    "heatmap --last 10m --comm kubelet --kernel",
    "heatmap incident.zscope -o incident.html    # to select in",
)


def command(
    question: HeatmapQuestion,
    directory: Dir = None,
    output: Output = None,
    node: Node = None,
    json_: Json = False,
) -> None:
    """Draw a sub-second heat map: when was the node busy?

    A column is a second, a row a part of it: a stall of 40 ms is visible in an hour of data.

    With --by core a row is a core. The HTML file also has the flame graph of the selection.
    """
    kind = picture.format_of(output) if output else None
    with opened(directory, node) as recording:
        from zombiescope.documents.heatmap import answer

        found = answer(recording, question)
        if output and kind:
            if not found.drawn.total:
                picture.refuse_empty(output, found.selection.filters, directory)
            _write(output, kind, found)
        if json_:
            print_document("heatmap", found.document())
        elif not output:
            _print(found, directory)


def _write(output: Path, kind: str, found: HeatmapAnswer) -> None:
    if kind == "html":
        from zombiescope.web import report

        opens: dict[str, str] = {"by": found.question.by}
        rows = found.question.rows
        picture.write_page(
            output, lambda: report.of_selection(found.selection, found.title, found.window, opens, rows=rows)
        )
    else:
        picture.write(output, _drawn(found, kind))


def _drawn(found: HeatmapAnswer, kind: str) -> str:
    from zombiescope.query import svg, terminal

    if kind == "svg":
        return svg.heatmap(found.drawn, found.title, found.window.zone)
    lines = terminal.heatmap(found.drawn, picture.TEXT_COLUMNS, found.window.zone)
    legend = _legend(found.drawn, picture.TEXT_COLUMNS)
    return f"{picture.wrapped(found.title)}\n{terminal.plain(lines)}{legend}\n"


def _print(found: HeatmapAnswer, directory: str | None) -> None:
    from zombiescope.query import terminal

    out = console()
    out.print(found.title, style="bold")
    if not found.drawn.total:
        picture.say_empty(found.selection.filters, directory)
        return
    picture.print_lines(terminal.heatmap(found.drawn, picture.text_width(), found.window.zone))
    out.print(_legend(found.drawn, picture.text_width()))


def _legend(drawn: Heatmap, width: int) -> str:
    from zombiescope.query import terminal

    shown = terminal.narrowed(drawn, width)
    column = f"; a column is {shown.column_us / 1e6:g} s" if shown.column_us > drawn.column_us else ""
    blind = "; ? was not recorded" if drawn.blind else ""
    return f"{drawn.total:,} samples; darker is more{column}{blind}"
