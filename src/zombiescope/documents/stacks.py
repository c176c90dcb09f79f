"""The hottest functions and stacks of a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from zombiescope.documents import who as who_documents
from zombiescope.documents.selection import Load, Profile, load_stacks, profile
from zombiescope.query import top
from zombiescope.query.top import HotFunction, HotStack
from zombiescope.query.who import WhoRan
from zombiescope.questions.views import StacksQuestion
from zombiescope.store.reader import Recording


@dataclass(frozen=True, slots=True)
class HotStacks:
    profile: Profile
    total: int
    functions: Sequence[HotFunction]
    stacks: Sequence[HotStack]
    who: WhoRan

    def document(self) -> dict[str, Any]:
        window = self.profile.window
        return {
            "node": self.profile.recording.name,
            "from": window.start_us / 1e6,
            "to": window.end_us / 1e6,
            "total": self.total,
            "who": who_documents.table(self.who),
            "functions": [_function(hot) for hot in self.functions],
            "stacks": [
                {"value": hot.samples, "ratio": hot.ratio, "frames": [frame._asdict() for frame in hot.frames]}
                for hot in self.stacks
            ],
        }


def answer(recording: Recording, question: StacksQuestion, load: Load = load_stacks) -> HotStacks:
    """Raises QuestionError."""
    found = profile(recording, question, load)
    known, counts = found.selection.stacks, found.selection.counts()
    functions, hottest = top.functions(known, counts, question.top), top.stacks(known, counts, question.top)
    who = who_documents.of_profile(found, question.by, question.top)
    return HotStacks(found, int(counts.sum()), functions, hottest, who)


def _function(hot: HotFunction) -> dict[str, Any]:
    return {
        **hot.function._asdict(),
        "self": hot.self_samples,
        "total": hot.total_samples,
        "self_ratio": hot.self_ratio,
        "total_ratio": hot.total_ratio,
    }
