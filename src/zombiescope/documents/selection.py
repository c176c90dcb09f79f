"""The samples that a view is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zombiescope.query import python_frames
from zombiescope.query.selection import Filters, Selection
from zombiescope.query.stacks import Span, Stacks
from zombiescope.questions.filters import words
from zombiescope.questions.views import ProfileQuestion
from zombiescope.questions.window import Window
from zombiescope.store.reader import Recording

Load = Callable[[Recording, Sequence[Span]], Stacks]
"""Reads stacks; a server that holds them has its own."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Samples of a window, and what they are: what every picture of stacks has."""

    window: Window
    selection: Selection
    title: str

    @property
    def recording(self) -> Recording:
        return self.selection.recording

    @property
    def filters(self) -> Filters:
        return self.selection.filters


def profile(
    recording: Recording, question: ProfileQuestion, load: Load | None = None, *, filters: Filters | None = None
) -> Profile:
    """The samples that are asked for. `load` where the stacks will be needed. Raises QuestionError."""
    window = question.window.choose(recording)
    chosen = question.filters.chosen() if filters is None else filters
    return Profile(window, selected(recording, window, chosen, load), title(recording, window, chosen))


def selected(recording: Recording, window: Window, filters: Filters, load: Load | None = None) -> Selection:
    """The samples in that part of the window in which there was a recording."""
    start_us = max(window.start_us, recording.start_us)
    span = (start_us, max(start_us, min(window.end_us, recording.end_us + 1)))
    return Selection(recording, *span, filters, None if load is None else load(recording, [span]))


def title(recording: Recording, window: Window, filters: Filters) -> str:
    return "  ".join(part for part in (recording.name, window.heading(), words(filters)) if part)


def needs_stacks(recording: Recording, filters: Filters) -> bool:
    """Whether stacks are read to know which samples pass."""
    return filters.on_stacks or "imported" in recording.node


load_stacks: Load = python_frames.load
