"""`zombiescope stacks`: the hottest functions and stacks of a window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.commands import drawing
from zombiescope.commands.filters import FilterOptions
from zombiescope.commands.output import Json, console, examples, print_document, table
from zombiescope.commands.quantities import human_count
from zombiescope.commands.reading import Dir, Node, opened
from zombiescope.commands.window import WindowOptions

if TYPE_CHECKING:
    from zombiescope.profile.top import HotFunction, HotStack

EXAMPLES = examples(
    "stacks --last 5m",
    "stacks --at 12:03:22 --cpu 39",
    "stacks --last 1h --unit kubelet.service --kernel --top 50",
    "stacks --last 5m --json | jq '.functions[0]'",
)

_STACKS_SHOWN = 3
_NAME_WIDTH = 46
_LEAF_FRAMES = 12


def command(
    span: WindowOptions,
    filtered: FilterOptions,
    directory: Dir = None,
    top: Annotated[int, typer.Option("--top", min=1, metavar="N", help="How many functions, and stacks.")] = 20,
    node: Node = None,
    json_: Json = False,
) -> None:
    """The hottest functions and stacks of any past window.

    Self is time in the function, total is time in it and in what it called.

    Functions that only switch interrupts back on look hot and are not: they are charged to their callers.
    """
    filters = filtered.chosen()
    with opened(directory, node) as recording:
        from zombiescope.documents.selected import selected
        from zombiescope.documents.stacks import document
        from zombiescope.profile import top as hottest

        window = span.choose(recording)
        selection = selected(recording, window, filters)
        counts = selection.counts()
        functions = hottest.functions(selection.stacks, counts, top)
        stacks = hottest.stacks(selection.stacks, counts, top)
        if json_:
            print_document("stacks", document(recording.name, window, int(counts.sum()), functions, stacks))
            return
        console().print(drawing.heading(recording, window, filters), style="bold")
        if not functions:
            drawing.say_empty(filters)
            return
        _print(int(counts.sum()), functions, stacks)


def _print(total: int, functions: list[HotFunction], stacks: list[HotStack]) -> None:
    out = console()
    rows = table("self", "total", "function", "module", right=("self", "total"))
    for hot in functions:
        module = (hot.function.module or "").rpartition("/")[2]
        rows.add_row(
            _percent(hot.self_ratio), _percent(hot.total_ratio), _short(hot.function.name, _NAME_WIDTH), module
        )
    out.print(rows)
    out.print(f"\n{human_count(total)} samples; the hottest stacks, innermost frame first:")
    for stack in stacks[:_STACKS_SHOWN]:
        names = [_short(frame.name, _NAME_WIDTH + 20) for frame in reversed(stack.frames)]
        out.print(f"\n{_percent(stack.ratio)}  {names[0]}")
        for name in names[1:_LEAF_FRAMES]:
            out.print(f"        {name}")
        if len(names) > _LEAF_FRAMES:
            out.print(f"        ... {len(names) - _LEAF_FRAMES} more")


def _percent(ratio: float) -> str:
    return f"{ratio * 100:5.1f}%"


def _short(name: str, width: int) -> str:
    return name if len(name) <= width else name[: width - 1] + "…"
