"""When the live diagnosis failed while something was recorded: silence then is no sign of health.

It is read from what the recorder wrote: gaps of the source "live diagnosis", and events of the kind helper_failed.
Recorders of older versions wrote only such events, called it the doctor, and gave the number of a signal as the reason.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from zombiescope.query.events import events
from zombiescope.questions.window import Window
from zombiescope.store.event import Event
from zombiescope.store.gaps import Gap
from zombiescope.store.health import LIVE_DIAGNOSIS
from zombiescope.store.reader import Recording

_KIND = "helper_failed"
_OF_IT = re.compile(r"\b(live diagnosis|diagnosis pass|doctor)\b", re.IGNORECASE)
_BEFORE_WHY = re.compile(r"^[^:]*\b(?:live diagnosis|diagnosis pass|doctor)\b[^:]*: *", re.IGNORECASE)
_SIGNAL = re.compile(r"-(\d{1,2})$")


@dataclass(frozen=True, slots=True)
class Outage:
    """All failures in a window together."""

    failures: int
    from_us: int
    to_us: int
    why: str
    """Of the last one."""

    def document(self) -> dict[str, Any]:
        return {"failures": self.failures, "from": self.from_us / 1e6, "to": self.to_us / 1e6, "why": self.why}

    def line(self, window: Window) -> str:
        """As a diagnosis lists what it could not check."""
        often = "failed once" if self.failures == 1 else f"failed {self.failures} times"
        start, end = window.clock(self.from_us), window.clock(self.to_us)
        when = f"at {start}" if start == end else f"between {start} and {end}"
        return f"{LIVE_DIAGNOSIS}: {often} {when} ({self.why}); incidents may have gone unreported"


def outage(recording: Recording, window: Window) -> Outage | None:
    """None when nothing in the window says that it failed."""
    start, end = window.start_us, window.end_us
    gaps = [gap for gap in recording.gaps(start, end) if gap.source == LIVE_DIAGNOSIS]
    failed = [event for event in events(recording, start, end, kinds=[_KIND]) if _is_of_it(event)]
    if not gaps and not failed:
        return None
    begins = [*(gap.from_us for gap in gaps), *(event.at_us for event in failed)]
    ends = [*(gap.to_us for gap in gaps), *(event.at_us for event in failed)]
    return Outage(len(failed) or len(gaps), max(min(begins), start), min(max(ends), end), _why(gaps, failed))


def not_checked(found: Outage | None, lines: Iterable[str], window: Window) -> tuple[str, ...]:
    """What a diagnosis could not check, with the outage in one line instead of a line for each of its gaps."""
    if found is None:
        return tuple(lines)
    return (found.line(window), *(line for line in lines if not line.startswith(f"{LIVE_DIAGNOSIS}:")))


def _is_of_it(event: Event) -> bool:
    part = event.fields.get("part")
    return part == LIVE_DIAGNOSIS if part is not None else _OF_IT.search(event.text) is not None


def _why(gaps: list[Gap], failed: list[Event]) -> str:
    said = _BEFORE_WHY.sub("", failed[-1].text) if failed else gaps[-1].why
    number = _SIGNAL.fullmatch(said)
    with suppress(ValueError):
        return said if number is None else signal.Signals(int(number[1])).name
    return said
