"""`zombiescope events`: everything that happened, and what happens next."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, tzinfo
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.base.text import printable
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, command_line, console, examples, note, print_document, print_object
from zombiescope.cli.recording_argument import Dir, Node, opened, place_of, recorded_range
from zombiescope.questions.views import EventsQuestion
from zombiescope.store import locate

if TYPE_CHECKING:
    from rich.text import Text

    from zombiescope.store.event import Event

EXAMPLES = examples(
    "events --last 1h",
    "events --at-least critical --json",
    "events --kind nic_reset --kind soft_lockup",
    "events --follow --json   # one object a line, as they happen",
)

_STYLES = {"critical": "bold red", "warning": "yellow"}
_KIND_WIDTH = 16


def command(
    question: EventsQuestion,
    directory: Dir = None,
    follow: Annotated[bool, typer.Option("--follow", help="Keep printing what happens next, until Ctrl-C.")] = False,
    node: Node = None,
    json_: Json = False,
) -> None:
    """List events: NIC resets, lockups, restarts, cgroup churn, marks, kernel warnings."""
    window = question.window
    if follow and (window.to or window.at):
        raise typer.BadParameter("--follow has no end; leave out --to and --at")
    with opened(directory, node) as recording:
        from zombiescope.documents.events import answer, refuse_unknown_kinds

        refuse_unknown_kinds(recording, question)
        # Without a window, following starts now.
        found = answer(recording, question, past=not follow or bool(window.last or window.from_))
        place, read_to_us = place_of(directory) / recording.prefix, recording.end_us
    if json_ and not follow:
        print_document("events", found.document())
        return
    write = _writer(json_, found.window.zone)
    for event in found.events:
        write(event)
    if follow:
        _follow(place, read_to_us, question, write)
    elif not found.events:
        look = command_line("info", directory)
        note(f"zombiescope: no such event in this window; recorded is {recorded_range()}: see '{look}'")


def _writer(json_: bool, zone: tzinfo) -> Callable[[Event], None]:
    if json_:
        from zombiescope.documents.events import event as document

        return lambda event: print_object(document(event))
    out = console()
    day: list[date] = []

    def write(event: Event) -> None:
        """A heading for each new day, then one line an event."""
        at = datetime.fromtimestamp(event.at_us / 1e6, zone)
        if day[-1:] != [at.date()]:
            day.append(at.date())
            out.print(f"{at:%Y-%m-%d %Z}".rstrip(), style="bold")
        out.print(_line(event, at, out.width))

    return write


def _line(event: Event, at: datetime, width: int) -> Text:
    """One event; where its text needs more lines, they are set in below it, and what a code means below those."""
    from rich.text import Text

    from zombiescope.documents.events import meaning

    line = Text(f"{at:%H:%M:%S}  ").append(f"{event.kind:<{_KIND_WIDTH}} ", _STYLES.get(event.severity, ""))
    room = max(20, width - line.cell_len)
    means = meaning(event)
    lines = [*(wrap(printable(event.text), room) or [""]), *(wrap(means, room) if means else ())]
    return line.append(f"\n{' ' * line.cell_len}".join(lines))


def _follow(place: Path, read_to_us: int, question: EventsQuestion, write: Callable[[Event], None]) -> None:
    """Write the events of every frame that was appended after `read_to_us`."""
    from zombiescope.documents.events import appended
    from zombiescope.store.tail import follow

    if not place.is_dir():
        raise Failure(f"{place} is a pack: nothing is added to it any more", "leave out --follow")
    if locate.is_locked(place) is False:
        note(f"zombiescope: no recorder writes into {place} now; waiting for one")
    try:
        for frame in follow(place):
            if frame.wall_us > read_to_us:
                for event in appended(frame, question):
                    write(event)
    except KeyboardInterrupt:
        return
