"""The parameters that most requests share: which recording, which window, which samples. They are named and written
as the options of the command line are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Depends, Query

from zombiescope.documents import filters, window
from zombiescope.documents.window import Window
from zombiescope.profile.selection import Filters
from zombiescope.recording.reader import Recording

MOST_TEXT = 1_000
_UNIX = re.compile(r"\d{9,11}(\.\d{1,9})?")
_FAR_US = 366 * 86_400_000_000
"""How far beside the recording a window may reach; more is cut off."""

Text = Annotated[str, Query(max_length=MOST_TEXT)]
Number = Annotated[int, Query(ge=0, le=2**31 - 1)]
Texts = Annotated[list[Text] | None, Query(max_length=100)]
Numbers = Annotated[list[Number] | None, Query(max_length=1000)]


@dataclass(frozen=True, slots=True)
class Span:
    """The window as it was written."""

    last: str | None
    from_: str | None
    to: str | None
    at: str | None

    @property
    def given(self) -> bool:
        return any(part is not None for part in (self.last, self.from_, self.to, self.at))

    @property
    def until_us(self) -> int | None:
        """Where it ends, if it says so by itself."""
        plain = self.from_ is not None and self.to is not None and self.last is None and self.at is None
        if plain and _UNIX.fullmatch(self.from_ or "") and _UNIX.fullmatch(self.to or ""):
            return round(float(self.to or 0) * 1e6)
        return None

    def window(self, recording: Recording) -> Window:
        """Raises UnclearError."""
        chosen = window.choose(recording, self.last, self.from_, self.to, self.at)
        start = min(max(chosen.start_us, recording.start_us - _FAR_US), recording.end_us + _FAR_US - 1)
        end = max(min(chosen.end_us, recording.end_us + _FAR_US), start + 1)
        return Window(start, end, chosen.zone)


def _span(
    from_: Annotated[
        str | None, Query(alias="from", max_length=64, description="12:03:22, ISO, Unix seconds, or +30s.")
    ] = None,
    to: Annotated[str | None, Query(max_length=64, description="Written likewise.")] = None,
    last: Annotated[str | None, Query(max_length=64, description="The last 30s, 5m, 2h ... of the recording.")] = None,
    at: Annotated[str | None, Query(max_length=64, description="The one second (or tick, if longer) at T.")] = None,
) -> Span:
    return Span(last, from_, to, at)


def _filters(
    cpu: Annotated[list[Text] | None, Query(max_length=100, description="On these cores: 3, or 0-3,8.")] = None,
    pid: Annotated[list[Number] | None, Query(max_length=1000, description="Of this process.")] = None,
    tid: Annotated[list[Number] | None, Query(max_length=1000, description="Of this thread.")] = None,
    comm: Annotated[list[Text] | None, Query(max_length=100, description="Of tasks of this name; * and ?.")] = None,
    unit: Annotated[list[Text] | None, Query(max_length=100, description="Of this systemd unit; * and ?.")] = None,
    container: Annotated[list[Text] | None, Query(max_length=100, description="Of this container.")] = None,
    mode: Annotated[
        Literal["kernel", "user"] | None, Query(description="Taken inside the kernel, or outside of it.")
    ] = None,
    match: Annotated[
        str | None, Query(max_length=MOST_TEXT, description="With a frame in whose name the expression is found.")
    ] = None,
    event: Annotated[str | None, Query(max_length=MOST_TEXT, description="Samples of this event.")] = None,
    idle: Annotated[bool, Query(description="Idle cores too, which an import keeps.")] = False,
) -> Filters:
    kernel = None if mode is None else mode == "kernel"
    return filters.chosen(cpu, pid, tid, comm, unit, container, kernel, match, event, idle, linear=True)


WindowAsked = Annotated[Span, Depends(_span)]
FiltersAsked = Annotated[Filters, Depends(_filters)]
