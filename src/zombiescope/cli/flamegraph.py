"""`zombiescope flamegraph`: where the time of a window went, and how that differs from another window."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from zombiescope.cli import picture
from zombiescope.cli.output import Json, console, examples, print_document
from zombiescope.cli.picture import Output
from zombiescope.cli.recording_argument import Dir, Node, opened
from zombiescope.questions.views import FlamegraphQuestion

if TYPE_CHECKING:
    from pathlib import Path

    from zombiescope.documents.flamegraph import Flamegraph
    from zombiescope.query.flame import Tree

EXAMPLES = examples(
    "flamegraph --last 5m",
    "flamegraph --at 12:03:22 --cpu 39 -o bad-second.svg",
    "flamegraph --last 10m --comm kubelet --invert",
    "flamegraph --last 5m --by owner    # a root for each unit or pod",
    "flamegraph --at 12:03:22 --against 11:00..11:01 -o diff.html",
    "flamegraph --from 12:03 --to 12:04 --against healthy.zscope",
    "flamegraph --last 5m --json | jq .total",
)


def command(
    question: FlamegraphQuestion,
    directory: Dir = None,
    output: Output = None,
    node: Node = None,
    json_: Json = False,
) -> None:
    """Draw the flame graph of any past window.

    With --against it shows the difference of two windows, scaled to the same length; functions that vanished stay
    visible.

    Frames too narrow to see are left out; the graph says how many.
    """
    kind = picture.format_of(output) if output else None
    with ExitStack() as stack:
        recording = stack.enter_context(opened(directory, node))
        from zombiescope.documents.flamegraph import answer

        place = None if question.against is None else question.against.place
        other = None if place is None else stack.enter_context(opened(place, node))
        found = answer(recording, question, other=other)
        if output and kind:
            if not found.tree.width[0]:
                picture.refuse_empty(output, found.selection.filters, directory)
            _write(output, kind, found)
        if json_:
            print_document("flamegraph", found.document())
        elif not output:
            _print(found, directory)


def _write(output: Path, kind: str, found: Flamegraph) -> None:
    if kind == "html":
        from zombiescope.web import report

        opens = {"inv": "1"} if found.question.invert else {}
        opens |= {} if found.question.by == "none" else {"group": found.question.by}
        picture.write_page(
            output,
            lambda: report.of_selection(found.selection, found.title, found.window, opens, base=found.reference),
        )
    else:
        picture.write(output, _drawn(found, kind))


def _drawn(found: Flamegraph, kind: str) -> str:
    from zombiescope.query import svg, terminal

    if kind == "svg":
        return svg.flamegraph(found.tree_for("svg"), found.title, icicle=found.question.invert)
    lines = terminal.flamegraph(found.tree, picture.TEXT_COLUMNS)
    words = "".join(f"{line}\n" for line in _hottest(found, picture.TEXT_COLUMNS))
    return f"{picture.wrapped(found.title)}\n{terminal.plain(lines)}{words}{picture.wrapped(_legend(found.tree))}\n"


def _print(found: Flamegraph, directory: str | None) -> None:
    from zombiescope.query import terminal

    out = console()
    out.print(found.title, style="bold")
    if not found.tree.width[0]:
        picture.say_empty(found.selection.filters, directory)
        return
    picture.print_lines(terminal.flamegraph(found.tree, picture.text_width()))
    for line in _hottest(found, picture.text_width()):
        out.print(line, no_wrap=True)
    out.print(_legend(found.tree))


def _hottest(found: Flamegraph, width: int) -> list[str]:
    """In words, for names that are wider than their frames."""
    from zombiescope.query import terminal

    lines = terminal.hottest(found.tree, width, inverted=found.question.invert)
    return ["", "most samples are in (function < who called it):", *lines, ""] if lines else []


def _legend(tree: Tree) -> str:
    from zombiescope.query import svg

    return "\n".join(
        text for text in (f"{tree.total:,} samples", svg.says_pruned(tree), svg.says_colours(tree)) if text
    )
