"""What happened in a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from zombiescope.questions.views import EventsQuestion
from zombiescope.questions.window import Window
from zombiescope.recording.event import Event
from zombiescope.recording.log import LogFrame
from zombiescope.recording.reader import Recording
from zombiescope.views.events import events, of_frame


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


def appended(frame: LogFrame, question: EventsQuestion) -> list[Event]:
    """Those of a frame that was written after the answer."""
    return of_frame(frame, kinds=question.kind or None, at_least=question.at_least)


def event(each: Event) -> dict[str, Any]:
    same = ("kind", "source", "severity", "text", "fields")
    return {"at": each.at_us / 1e6, **{name: getattr(each, name) for name in same}}
