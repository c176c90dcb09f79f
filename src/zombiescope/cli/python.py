"""`zombiescope python`: what threads were doing in Python, function, file and line."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from zombiescope.base.text import printable
from zombiescope.cli.output import Json, command_line, console, examples, note, print_document, table
from zombiescope.cli.recording_argument import Dir, Node, opened
from zombiescope.questions.views import PythonQuestion

if TYPE_CHECKING:
    from rich.console import Console

    from zombiescope.documents.python import PythonAnswer
    from zombiescope.query.python import Doing, PythonFrame, PythonThread

EXAMPLES = examples(
    "python --last 1m",
    "python --at 12:03:22 --pid 31917   # a trainer in a bad second",
    "python --last 5m --json | jq '.threads[0].stacks[0]'",
)

_LINES = 5
_SPANS = 12


def command(question: PythonQuestion, directory: Dir = None, node: Node = None, json_: Json = False) -> None:
    """Show what threads were doing in Python: function, file and line.

    Read from outside, without instrumentation, from processes that are busy, that wait, or that use a GPU. For one
    thread (--tid) it is shown over time.
    """
    with opened(directory, node) as recording:
        from zombiescope.documents.python import answer

        found = answer(recording, question)
    if json_:
        print_document("python", found.document())
    elif found.threads:
        _print(found, one=bool(question.tid))
    else:
        look = command_line("info", directory)
        note(f"zombiescope: no Python was looked at in this window; '{look}' says if it could not be read")


def _print(found: PythonAnswer, *, one: bool) -> None:
    out = console()
    out.print(f"{found.node}  {found.window.heading()}", style="bold")
    for thread in found.shown:
        _print_thread(out, thread, min(found.top, _LINES))
        if one:
            _print_spans(out, thread.doing, found)
    left = len(found.threads) - len(found.shown)
    if left:
        out.print(f"and {left} more threads; --top shows them", style="dim")


def _print_thread(out: Console, thread: PythonThread, top: int) -> None:
    from rich.text import Text

    ratio = thread.waiting_ratio
    waits = "" if ratio is None else f", waiting in {ratio * 100:.0f}%"
    name = printable(thread.comm or "?")
    heading = f"{name}  pid {thread.pid}" + ("" if thread.tid == thread.pid else f", tid {thread.tid}")
    out.print()
    out.print(Text(heading, "bold").append(f"  {thread.looks} looks{waits}", "dim"))
    rows = table("share", "function", "file", right=("share",), gap=2, wraps="function")
    for (leaf, mine), looks in thread.places().most_common(top):
        rows.add_row(f"{looks / thread.looks * 100:.0f}%", *_cells(leaf, mine))
    out.print(rows)


def _cells(leaf: PythonFrame, mine: PythonFrame) -> tuple[str, str]:
    """The innermost function; and the line of somebody's own code from which it was called."""
    called = "" if mine == leaf else f"  in {mine.name} {mine.place}"
    return printable(f"{leaf.name}{called}"), printable(f"{leaf.file}:{leaf.line}")


def _print_spans(out: Console, doing: list[Doing], found: PythonAnswer) -> None:
    from rich.text import Text

    from zombiescope.query.python import own

    for each in doing[-_SPANS:]:
        at = datetime.fromtimestamp(each.from_us / 1e6, found.window.zone)
        function, file = _cells(each.frames[-1], own(each.frames)[0])
        lasts = f"{(each.to_us - each.from_us) / 1e6:5.1f} s"
        when = f"  {at:%H:%M:%S.%f}"[:-5]
        out.print(Text(f"{when}  {lasts}  {printable(each.state or ' ')}  ", "dim").append(f"{function}  {file}"))
