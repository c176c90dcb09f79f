"""`zombiescope stacks`: the hottest functions and stacks of a window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zombiescope.cli import picture
from zombiescope.cli.output import Json, console, examples, print_document, table
from zombiescope.cli.quantities import human_count
from zombiescope.cli.recording_argument import Dir, Node, opened
from zombiescope.query.short_names import fitted
from zombiescope.questions.views import StacksQuestion

if TYPE_CHECKING:
    from zombiescope.documents.stacks import HotStacks

EXAMPLES = examples(
    "stacks --last 5m",
    "stacks --at 12:03:22 --cpu 39",
    "stacks --last 5m --by unit",
    "stacks --last 1h --unit kubelet.service --kernel --top 50",
    "stacks --last 5m --json | jq '.functions[0]'",
)

_STACKS_SHOWN = 3
_NAME_WIDTH = 46
_WHO_WIDTH, _OWNER_WIDTH = 28, 22
_LEAF_FRAMES = 12


def command(question: StacksQuestion, directory: Dir = None, node: Node = None, json_: Json = False) -> None:
    """List who ran, and the hottest functions and stacks, in any past window.

    Self is time in the function; total includes the functions that it called.

    Functions that only re-enable interrupts look hot but are not; their time is charged to their callers.
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
        _print_who(found, question.by)
        _print(found)


_WHO_SHOWN = 8
_WHO = {
    "owner": "unit or pod", "unit": "unit", "pod": "pod", "container": "container", "image": "image",
    "process": "process", "thread": "thread", "comm": "name",
}  # fmt: skip


def _print_who(found: HotStacks, by: str) -> None:
    """Cores in the mean, of all samples, and how much of it inside the kernel."""
    out = console()
    rows = table("cores", "share", "kernel", _WHO[by], "of", right=("cores", "share", "kernel"))
    for ran in found.who.ran[:_WHO_SHOWN]:
        cores = "?" if ran.cpus is None else f"{ran.cpus:.2f}"
        owner = next((each for each in (ran.group.pod, ran.group.unit) if each and each != ran.group.name), "")
        shares = (_percent(ran.ratio), _percent(ran.kernel_ratio))
        rows.add_row(cores, *shares, fitted(ran.group.name, _WHO_WIDTH), fitted(owner, _OWNER_WIDTH))
    out.print(rows)
    more = len(found.who.ran) - _WHO_SHOWN + found.who.others
    if more > 0:
        out.print(f"and {more:,} more", style="dim")
    out.print()


def _print(found: HotStacks) -> None:
    out = console()
    rows = table("self", "total", "function", "module", right=("self", "total"))
    for hot in found.functions:
        module = (hot.function.module or "").rpartition("/")[2]
        rows.add_row(
            _percent(hot.self_ratio), _percent(hot.total_ratio), fitted(hot.function.name, _NAME_WIDTH), module
        )
    out.print(rows)
    out.print()
    out.print(f"{human_count(found.total)} samples; the hottest stacks, innermost frame first:")
    for stack in found.stacks[:_STACKS_SHOWN]:
        names = [fitted(frame.name, _NAME_WIDTH + 20) for frame in reversed(stack.frames)]
        out.print()
        out.print(f"{_percent(stack.ratio)}  {names[0]}")
        for name in names[1:_LEAF_FRAMES]:
            out.print(f"        {name}")
        if len(names) > _LEAF_FRAMES:
            out.print(f"        ... {len(names) - _LEAF_FRAMES} more")


def _percent(ratio: float) -> str:
    return f"{ratio * 100:5.1f}%"
