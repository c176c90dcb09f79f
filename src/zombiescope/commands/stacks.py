"""`zombiescope stacks`: the hottest functions and stacks of a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zombiescope.commands import picture
from zombiescope.commands.output import Json, console, examples, print_document, table
from zombiescope.commands.quantities import human_count
from zombiescope.commands.recording_argument import Dir, Node, opened
from zombiescope.questions.views import StacksQuestion

if TYPE_CHECKING:
    from zombiescope.documents.stacks import HotStacks

EXAMPLES = examples(
    "stacks --last 5m",
    "stacks --at 12:03:22 --cpu 39",
    "stacks --last 1h --unit kubelet.service --kernel --top 50",
    "stacks --last 5m --json | jq '.functions[0]'",
)

_STACKS_SHOWN = 3
_NAME_WIDTH = 46
_LEAF_FRAMES = 12


def command(question: StacksQuestion, directory: Dir = None, node: Node = None, json_: Json = False) -> None:
    """The hottest functions and stacks of any past window.

    Self is time in the function, total is time in it and in what it called.

    Functions that only switch interrupts back on look hot and are not: they are charged to their callers.
    """
    with opened(directory, node) as recording:
        from zombiescope.documents.stacks import answer

        found = answer(recording, question)
        if json_:
            print_document("stacks", found.document())
            return
        console().print(found.profile.title, style="bold")
        if not found.functions:
            picture.say_empty(found.profile.filters, directory)
            return
        _print(found)


def _print(found: HotStacks) -> None:
    out = console()
    rows = table("self", "total", "function", "module", right=("self", "total"))
    for hot in found.functions:
        module = (hot.function.module or "").rpartition("/")[2]
        rows.add_row(
            _percent(hot.self_ratio), _percent(hot.total_ratio), _short(hot.function.name, _NAME_WIDTH), module
        )
    out.print(rows)
    out.print()
    out.print(f"{human_count(found.total)} samples; the hottest stacks, innermost frame first:")
    for stack in found.stacks[:_STACKS_SHOWN]:
        names = [_short(frame.name, _NAME_WIDTH + 20) for frame in reversed(stack.frames)]
        out.print()
        out.print(f"{_percent(stack.ratio)}  {names[0]}")
        for name in names[1:_LEAF_FRAMES]:
            out.print(f"        {name}")
        if len(names) > _LEAF_FRAMES:
            out.print(f"        ... {len(names) - _LEAF_FRAMES} more")


def _percent(ratio: float) -> str:
    return f"{ratio * 100:5.1f}%"


def _short(name: str, width: int) -> str:
    return name if len(name) <= width else name[: width - 1] + "…"
