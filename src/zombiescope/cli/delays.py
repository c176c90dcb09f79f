"""`zombiescope delays`: who waited for a core, for how long, and who ran there meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zombiescope.base.text import printable
from zombiescope.cli.output import Json, command_line, console, examples, note, print_document, table
from zombiescope.cli.quantities import human_s
from zombiescope.cli.recording_argument import Dir, Node, opened
from zombiescope.questions.views import DelaysQuestion

if TYPE_CHECKING:
    from zombiescope.documents.delays import DelaysAnswer
    from zombiescope.query.delays import Delay

EXAMPLES = examples(
    "delays --last 1m",
    "delays --at 12:03:22 --cpu 39   # one core in a bad second",
    "delays --comm train.py --json | jq '.delays[0]'",
)

_FRAMES = 3


def command(question: DelaysQuestion, directory: Dir = None, node: Node = None, json_: Json = False) -> None:
    """Show who waited for a core, for how long, and who ran there.

    From snapshots of the schedule, which the recorder takes when something is suspicious or a mark arrives. A victim is
    a thread that could have run, or a softirq that was raised.
    """
    with opened(directory, node) as recording:
        from zombiescope.documents.delays import answer

        found = answer(recording, question)
    if json_:
        print_document("delays", found)
    elif found.reach_s is None:
        look = command_line("info", directory)
        note(
            "zombiescope: no snapshot of the schedule is in this window; they are taken when something is suspicious, "
            f"and by '{command_line('mark', None)} TEXT'; '{look}' says if the schedule could not be read"
        )
    else:
        _print(found)


def _print(found: DelaysAnswer) -> None:
    from zombiescope.kernel.cpu import format_list

    out = console()
    out.print(found.heading, style="bold")
    cores = format_list(found.watched_cpus)
    out.print(f"watched: cores {cores}, at least {human_s(found.reach_s or 0.0)} of the window", style="dim")
    if not found.delays:
        out.print("no delay of that length on these cores in that time")
        return
    figures = ("delayed", "core", "waits", "longest")
    rows = table("delayed", "victim", "by", "core", "waits", "longest", right=figures, gap=2)
    for one in found.shown:
        rows.add_row(human_s(one.seconds), *_parties(one), str(one.cpu), f"{one.waits:,}", human_s(one.longest_s))
    out.print(rows)
    left = len(found.delays) - len(found.shown) + found.left_out
    if left:
        out.print(f"and {left:,} more; --top shows them", style="dim")
    _print_longest(found)


def _parties(one: Delay) -> tuple[str, str]:
    from zombiescope.query.delays import named

    way = "".join(f" through {named(link)}" for link in one.through)
    return printable(named(one.victim) + way), printable("not known" if one.by is None else named(one.by))


def _print_longest(found: DelaysAnswer) -> None:
    """The sentence for the longest one, with where its culprit was."""
    from zombiescope.query.delays import sentence

    longest = max(found.delays, key=lambda one: one.longest_s)
    out = console()
    out.print()
    at = found.window.clock(longest.longest_from_us or longest.from_us, 3)
    if longest.longest_to_us is not None:
        at += f" – {found.window.clock(longest.longest_to_us, 3)}"
    where = f" in {' > '.join(longest.frames[-_FRAMES:])}" if longest.frames else ""
    out.print(printable(f"{at}  {sentence(longest)}{where}"))
