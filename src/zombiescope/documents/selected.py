"""The samples that a document is made of."""

from __future__ import annotations

from zombiescope.documents.window import Window
from zombiescope.profile.selection import Filters, Selection
from zombiescope.profile.stacks import Stacks
from zombiescope.recording.reader import Recording


def selected(recording: Recording, window: Window, filters: Filters, known: Stacks | None = None) -> Selection:
    """The samples in that part of the window in which there was a recording."""
    start_us = max(window.start_us, recording.start_us)
    end_us = min(window.end_us, recording.end_us + 1)
    return Selection(recording, start_us, max(start_us, end_us), filters, known)
