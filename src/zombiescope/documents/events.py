"""What happened in a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from zombiescope.base.errors import QuestionError
from zombiescope.kernel import xid
from zombiescope.query.events import events, known_kinds, of_frame
from zombiescope.questions.views import EventsQuestion
from zombiescope.questions.window import Window
from zombiescope.store.event import Event
from zombiescope.store.log import LogFrame
from zombiescope.store.reader import Recording


@dataclass(frozen=True, slots=True)
class EventsAnswer:
    node: str
    window: Window
    events: Sequence[Event]

    def document(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "from": self.window.start_us / 1e6,
            "to": self.window.end_us / 1e6,
            "events": [event(each) for each in self.events],
        }


def answer(recording: Recording, question: EventsQuestion, *, past: bool = True) -> EventsAnswer:
    """Without the past none of them, for whoever waits for what happens next. Raises QuestionError."""
    window = question.window.choose(recording)
    if not past:
        return EventsAnswer(recording.name, window, ())
    found = events(recording, window.start_us, window.end_us, kinds=question.kind or None, at_least=question.at_least)
    return EventsAnswer(recording.name, window, found)


def refuse_unknown_kinds(recording: Recording, question: EventsQuestion) -> None:
    """What neither this version writes nor the recording holds is a mistake. Raises QuestionError."""
    unknown = [kind for kind in question.kind if kind not in known_kinds()]
    held = set(recording.table("events", columns=["kind"]).column("kind").to_pylist()) if unknown else set()
    for kind in unknown:
        if kind not in held:
            recorded = sorted(filter(None, held))
            near = get_close_matches(kind, sorted({*known_kinds(), *recorded}), 3)
            said = f"did you mean {' or '.join(near)}?" if near else f"recorded: {', '.join(recorded) or 'no events'}"
            raise QuestionError(f"there is no kind of event called {kind!r}", said, option="kind")


def appended(frame: LogFrame, question: EventsQuestion) -> list[Event]:
    """Those of a frame that was written after the answer."""
    return of_frame(frame, kinds=question.kind or None, at_least=question.at_least)


def event(each: Event) -> dict[str, Any]:
    same = ("kind", "source", "severity", "text", "fields")
    means = meaning(each)
    said = {} if means is None else {"means": means}
    return {"at": each.at_us / 1e6, **{name: getattr(each, name) for name in same}, **said}


def meaning(each: Event) -> str | None:
    """What a code of a GPU's driver stands for; None for what is said in words."""
    return xid.meaning(each.fields.get("xid")) if each.kind == "gpu_xid" else None
