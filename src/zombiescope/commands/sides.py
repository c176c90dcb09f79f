"""The two things that are compared, as a person writes them.

11:00..11:05                  a window of the recording at hand
/var/lib/zombiescope          a recording, all of it
good.zscope@11:00..11:05      a window of another recording
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from zombiescope.commands.reading import opened
from zombiescope.commands.window import Window, choose, moment, zone_of

if TYPE_CHECKING:
    from zombiescope.recording.reader import Recording


@dataclass(frozen=True, slots=True)
class Side:
    """`place` None: the recording at hand. `span` None: all of it."""

    place: str | None
    span: tuple[str, str] | None


def parse(text: str, what: str) -> Side:
    """Raises typer.BadParameter."""
    if Path(text).exists():
        return Side(text, None)
    place, at, span = text.rpartition("@")
    if not at and ".." not in span:
        raise typer.BadParameter(
            f"{what} {text!r}: there is no such recording, and it is no window; write DIR, FROM..TO or DIR@FROM..TO"
        )
    first, dots, last = span.partition("..")
    if not (first and dots and last):
        raise typer.BadParameter(f"{what} {text!r} is not FROM..TO; write 11:00..11:05, or +0s..+30s")
    return Side(place or None, (first, last))


@contextmanager
def recording_of(side: Side, at_hand: str | None, node: str | None) -> Iterator[Recording]:
    with opened(side.place or at_hand, node) as recording:
        yield recording


def window_of(side: Side, recording: Recording, what: str, utc: bool = False) -> Window:
    """Raises typer.BadParameter."""
    if side.span is None:
        return choose(recording, utc=utc)
    zone = zone_of(recording.node, utc)
    start, end = (moment(text, recording, zone, what) for text in side.span)
    if start >= end:
        raise typer.BadParameter(f"{what} {'..'.join(side.span)!r} ends before it starts")
    if start > recording.end_us or end <= recording.start_us:
        # Nothing ran there as far as the recording knows, which must not look like an idle node.
        raise typer.BadParameter(f"{what} {'..'.join(side.span)!r} lies outside of the recording")
    return Window(start, end, zone)
