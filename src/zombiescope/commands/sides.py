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
from zombiescope.commands.usage import wrong_usage
from zombiescope.commands.window import Window, choose
from zombiescope.documents import sides

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
    with wrong_usage():
        return Side(place or None, sides.parts(span, what))


@contextmanager
def recording_of(side: Side, at_hand: str | None, node: str | None) -> Iterator[Recording]:
    with opened(side.place or at_hand, node) as recording:
        yield recording


def window_of(side: Side, recording: Recording, what: str, utc: bool = False) -> Window:
    """Raises typer.BadParameter."""
    if side.span is None:
        return choose(recording, utc=utc)
    with wrong_usage():
        return sides.spanning(side.span, recording, what, utc)
