"""`zombiescope events`: everything that happened, and what happens next."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zombiescope.commands.failure import Failure
from zombiescope.commands.output import Json, console, examples, note, print_document, print_object
from zombiescope.commands.reading import Dir, Node, opened, place_of
from zombiescope.commands.window import WindowOptions
from zombiescope.recording import locate

if TYPE_CHECKING:
    from rich.text import Text

    from zombiescope.recording.event import Event

EXAMPLES = examples(
    "events --last 1h",
    "events --at-least critical --json",
    "events --kind nic_reset --kind soft_lockup",
    "events --follow --json   # one object a line, as they happen",
)

_STYLES = {"critical": "bold red", "warning": "yellow"}
_KIND_WIDTH = 16


def _severity(text: str) -> str:
    from zombiescope._severity import SEVERITIES

    if text not in SEVERITIES:
        raise typer.BadParameter(f"{text!r} is not a severity; it is {', '.join(SEVERITIES)}")
    return text


Kind = Annotated[list[str] | None, typer.Option("--kind", metavar="KIND", help="Only this kind; may be repeated.")]
AtLeast = Annotated[
    str,
    typer.Option("--at-least", parser=_severity, metavar="SEVERITY", help="info, warning or critical and worse."),
]


def command(
    span: WindowOptions,
    directory: Dir = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with what happens next, until Ctrl-C.")] = False,
    kinds: Kind = None,
    at_least: AtLeast = "info",
    node: Node = None,
    json_: Json = False,
) -> None:
    """Everything that happened.

    NIC resets, lockups, restarts, cgroup churn, marks, and what the kernel warned of.
    """
    if follow and (span.to or span.at):
        raise typer.BadParameter("--follow has no end; leave out --to and --at")
    with opened(directory, node) as recording:
        from zombiescope.documents.events import document
        from zombiescope.views.events import events

        window = span.choose(recording)
        wanted = _Wanted(kinds or None, at_least)
        # Without a window, following starts now.
        past = not follow or bool(span.last or span.from_)
        found = events(recording, window.start_us, window.end_us, **wanted.options()) if past else []
        place, read_to_us = place_of(directory) / recording.prefix, recording.end_us
        if json_ and not follow:
            print_document("events", document(recording.name, window, found))
            return
    write = _writer(json_, window.zone)
    for event in found:
        write(event)
    if follow:
        _follow(place, read_to_us, wanted, write)
    elif not found:
        note("zombiescope: nothing happened in this window, or nobody looked: see 'zombiescope info'")


@dataclass(frozen=True, slots=True)
class _Wanted:
    kinds: Collection[str] | None
    at_least: str

    def options(self) -> dict[str, Any]:
        return {"kinds": self.kinds, "at_least": self.at_least}


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
    """One event; where its text needs more lines, they are set in below it."""
    from rich.text import Text

    line = Text(f"{at:%H:%M:%S}  ").append(f"{event.kind:<{_KIND_WIDTH}} ", _STYLES.get(event.severity, ""))
    room = max(20, width - line.cell_len)
    return line.append(f"\n{' ' * line.cell_len}".join(wrap(event.text, room) or [""]))


def _follow(place: Path, read_to_us: int, wanted: _Wanted, write: Callable[[Event], None]) -> None:
    """Write the events of every frame that was appended after `read_to_us`."""
    from zombiescope.recording.tail import follow
    from zombiescope.views.events import of_frame

    if not place.is_dir():
        raise Failure(f"{place} is a pack: nothing is added to it any more", "leave out --follow")
    if locate.is_locked(place) is False:
        note(f"zombiescope: no recorder writes into {place} now; waiting for one")
    try:
        for frame in follow(place):
            if frame.wall_us > read_to_us:
                for event in of_frame(frame, **wanted.options()):
                    write(event)
    except KeyboardInterrupt:
        return
