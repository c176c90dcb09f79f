"""FROM..TO: the other window of a comparison."""

from __future__ import annotations

from zombiescope.documents.unclear import UnclearError
from zombiescope.documents.window import Span, Window, moment, zone_of


def parts(text: str, what: str) -> tuple[str, str]:
    """Raises UnclearError."""
    first, dots, last = text.partition("..")
    if not (first and dots and last):
        raise UnclearError(f"{what} {text!r} is not FROM..TO; write 11:00..11:05, or +0s..+30s")
    return first, last


def between(text: str, recording: Span, what: str, utc: bool = False) -> Window:
    """The window FROM..TO of a recording. Raises UnclearError."""
    return spanning(parts(text, what), recording, what, utc)


def spanning(ends: tuple[str, str], recording: Span, what: str, utc: bool = False) -> Window:
    zone = zone_of(recording.node, utc)
    start, end = (moment(text, recording, zone, what) for text in ends)
    if start >= end:
        raise UnclearError(f"{what} {'..'.join(ends)!r} ends before it starts")
    if start > recording.end_us or end <= recording.start_us:
        # Nothing ran there as far as the recording knows, which must not look like an idle node.
        raise UnclearError(f"{what} {'..'.join(ends)!r} lies outside of the recording")
    return Window(start, end, zone)
