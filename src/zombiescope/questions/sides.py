"""One side of a comparison, as a person or a link writes it.

11:00..11:05                  a window of the recording at hand
/var/lib/zombiescope          a recording, all of it
good.zscope@11:00..11:05      a window of another recording
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from zombiescope.base.errors import QuestionError
from zombiescope.questions.window import WHOLE, RecordedSpan, Window, held, moment, zone_of


@dataclass(frozen=True, slots=True)
class Side:
    """`place` None: the recording at hand. `ends` None: all of it. `option` is the one that it was given with."""

    place: str | None
    ends: tuple[str, str] | None
    option: str

    def choose(self, recording: RecordedSpan, utc: bool = False) -> Window:
        """Raises QuestionError."""
        if self.ends is None:
            whole = WHOLE.choose(recording)
            return Window(whole.start_us, whole.end_us, zone_of(recording.node, utc))
        zone = zone_of(recording.node, utc)
        start, end = (moment(text, recording, zone, self.option) for text in self.ends)
        said = "..".join(self.ends)
        if start >= end:
            raise QuestionError(f"{said!r} ends before it starts", option=self.option)
        if start > recording.end_us or end <= recording.start_us:
            # Nothing ran there as far as the recording knows, which must not look like an idle node.
            raise QuestionError(
                f"{said!r} is outside of the recording", f"it holds {held(recording, utc)}", option=self.option
            )
        return Window(start, end, zone)


def window(text: str, option: str = "against") -> Side:
    """FROM..TO of the recording at hand. Raises QuestionError."""
    first, dots, last = text.partition("..")
    if not (first and dots and last):
        raise QuestionError(f"{text!r} is not FROM..TO", "write 11:00..11:05, or +0s..+30s", option=option)
    return Side(None, (first, last), option)


def side(text: str, option: str = "against") -> Side:
    """FROM..TO, DIR or DIR@FROM..TO; looks on the disk whether there is a DIR. Raises QuestionError."""
    if Path(text).exists():
        return Side(text, None, option)
    first, dots, last = text.rpartition("..")
    if not dots:
        raise QuestionError(
            f"{text!r} is neither a recording nor a window", "write DIR, FROM..TO or DIR@FROM..TO", option=option
        )
    # A time may begin with @ itself.
    place, _, first = first.rpartition("@")
    return Side(place.removesuffix("@") or None, window(f"{first}..{last.removeprefix('@')}", option).ends, option)
