"""Who waited for a core in a window, and who ran there meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated

from zombiescope.model.answer import HIDDEN, Field
from zombiescope.query.delays import LEAST_S, Delay, Watched, delays, sentence, with_frames
from zombiescope.questions.views import DelaysQuestion
from zombiescope.questions.window import WindowAnswer
from zombiescope.store.reader import Recording

__all__ = ["DelaysAnswer", "answer", "sentence"]

MOST = 1_000


@dataclass(frozen=True, slots=True)
class DelaysAnswer(WindowAnswer):
    """Direct ones first, then those that came through others; of each the longest first."""

    delays: list[Delay]
    left_out: Annotated[int, Field(means="more of them, which are shorter")]
    reach_s: Annotated[
        float | None,
        Field(means="how much of the window is known on the core of which least is known; null: there is no snapshot"),
    ]
    watched_cpus: list[int]
    watched: list[Watched]
    top: Annotated[int, HIDDEN]

    @property
    def shown(self) -> list[Delay]:
        return self.delays[: self.top]


def answer(recording: Recording, question: DelaysQuestion) -> DelaysAnswer:
    """Raises QuestionError."""
    window = question.window.choose(recording)
    least_s = LEAST_S if question.least is None else question.least
    found = delays(recording, window.start_us, window.end_us, least_s=least_s)
    chosen = [one for one in found.delays if _is_wanted(one, question)]
    kept = with_frames(recording, chosen[:MOST], min(question.top, 20))
    left = len(chosen) - len(kept)
    return DelaysAnswer(
        recording.name, window, kept, left, found.reach_s, found.watched_cpus, found.watched, question.top
    )


def _is_wanted(delay: Delay, question: DelaysQuestion) -> bool:
    either = [one for one in (delay.victim, delay.by) if one is not None]
    if question.cpu and delay.cpu not in question.cpu:
        return False
    if question.pid and not any(one.pid in question.pid for one in either):
        return False
    return not question.comm or any(fnmatchcase(one.comm or "", each) for one in either for each in question.comm)
