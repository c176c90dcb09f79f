"""`zombiescope flamegraph`: where the time of a window went, and how that differs from another window."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.commands import drawing, sides
from zombiescope.commands.drawing import Output
from zombiescope.commands.filters import FilterOptions
from zombiescope.commands.output import Json, console, examples, print_document
from zombiescope.commands.reading import Dir, Node, opened
from zombiescope.commands.window import Window, WindowOptions

if TYPE_CHECKING:
    from zombiescope.profile.flame import Tree
    from zombiescope.profile.selection import Selection
    from zombiescope.recording.columns import Ints

EXAMPLES = examples(
    "flamegraph --last 5m",
    "flamegraph --at 12:03:22 --cpu 39 -o bad-second.svg",
    "flamegraph --last 10m --comm kubelet --invert",
    "flamegraph --at 12:03:22 --against 11:00..11:01 -o diff.html",
    "flamegraph --from 12:03 --to 12:04 --against healthy.zscope",
    "flamegraph --last 5m --json | jq .total",
)

_FRAME_BYTES = 5_000
"""Of a file: what is not a node."""


def command(
    span: WindowOptions,
    filtered: FilterOptions,
    directory: Dir = None,
    invert: Annotated[bool, typer.Option("--invert", help="Start from where the time was spent.")] = False,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="FROM..TO",
            help="Show how the window differs from this one, or from DIR, DIR@FROM..TO.",
        ),
    ] = None,
    prune: Annotated[
        float | None,
        typer.Option(
            "--prune",
            min=0,
            max=1,
            metavar="RATIO",
            help="Leave out what is narrower; 0 keeps everything. Default: 0.0005, or what keeps the file below 1 MB.",
        ),
    ] = None,
    output: Output = None,
    node: Node = None,
    json_: Json = False,
) -> None:
    """Where the time went: the flame graph of any past window.

    With --against it shows the difference of two windows, as if they were equally long; what vanished stays visible.

    What is too narrow to be seen is left out, and said.
    """
    kind = drawing.format_of(output) if output else None
    filters = filtered.chosen()
    side = None if against is None else sides.parse(against, "--against")
    with ExitStack() as stack:
        recording = stack.enter_context(opened(directory, node))
        from zombiescope.documents.flamegraph import document, with_base
        from zombiescope.documents.selected import selected

        window = span.choose(recording)
        title = drawing.heading(recording, window, filters)
        selection = selected(recording, window, filters)
        other: Window | None = None
        base: Ints | None = None
        if side is not None:
            there = recording if side.place is None else stack.enter_context(opened(side.place, node))
            other = sides.window_of(side, there, "--against", span.utc)
            title += f"  against {'' if there is recording else there.name + '  '}{other.heading()}"
            selection, base = with_base(selection, there, other)
        if output and kind == "html":
            from zombiescope.web import report

            compared = report.Compared.of(base, other)
            opens = {"inv": "1"} if invert else {}
            drawing.write_page(output, lambda: report.of_selection(selection, title, window, opens, base=compared))
            if not json_:
                return
        from zombiescope.profile import flame

        below = flame.VISIBLE_RATIO if prune is None else prune
        tree = flame.fold(selection.stacks, selection.counts(), base, invert=invert, below_ratio=below)
        if output and kind != "html":
            drawing.write(output, _picture(_small(tree, kind) if prune is None else tree, title, kind, invert))
        if json_:
            tree = _small(tree, "json") if prune is None else tree
            print_document("flamegraph", document(recording.name, window, other, tree))
        elif not output:
            _print(tree, title, selection)


def _small(tree: Tree, kind: str | None) -> Tree:
    """The tree without what would make a file of this kind too large."""
    from zombiescope.profile import pruning, svg

    cost = {"svg": svg.frame_bytes, "json": pruning.json_bytes}.get(kind or "")
    return tree if cost is None else pruning.within(tree, cost(tree), pruning.FILE_BYTES - _FRAME_BYTES)


def _picture(tree: Tree, title: str, kind: str | None, invert: bool) -> str:
    from zombiescope.profile import svg

    if kind == "svg":
        return svg.flamegraph(tree, title, icicle=invert)
    from zombiescope.profile import terminal

    lines = terminal.flamegraph(tree, drawing.TEXT_COLUMNS)
    return f"{drawing.wrapped(title)}\n{terminal.plain(lines)}{drawing.wrapped(_legend(tree))}\n"


def _print(tree: Tree, title: str, selection: Selection) -> None:
    from zombiescope.profile import terminal

    out = console()
    out.print(title, style="bold")
    if not tree.width[0]:
        drawing.say_empty(selection.filters)
        return
    drawing.print_lines(terminal.flamegraph(tree, drawing.text_width()))
    out.print(_legend(tree))


def _legend(tree: Tree) -> str:
    from zombiescope.profile import svg

    return "\n".join(
        text for text in (f"{tree.total:,} samples", svg.says_pruned(tree), svg.says_colours(tree)) if text
    )
