"""The samples that are written in the format of another tool, or frozen into a page."""

from __future__ import annotations

from dataclasses import replace

from zombiescope.documents.selection import Profile, profile
from zombiescope.questions.views import ExportQuestion
from zombiescope.store.reader import Recording


def answer(recording: Recording, question: ExportQuestion) -> Profile:
    """Raises QuestionError."""
    filters = replace(question.filters.chosen(), every_event=question.every_event)
    return profile(recording, question, filters=filters)
