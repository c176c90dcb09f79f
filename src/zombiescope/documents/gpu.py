"""Where the GPU seconds of a window went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from zombiescope.model.answer import Field
from zombiescope.query.gpu_account import GpuSeconds, IdleSpan, account
from zombiescope.questions.views import GpuQuestion
from zombiescope.questions.window import WindowAnswer
from zombiescope.store.reader import Recording


@dataclass(frozen=True, slots=True)
class GpuAccount(WindowAnswer):
    """Of each row busy_s and all of `waited` together are wall_s; the walls of all rows are GPUs x seconds."""

    by: Literal["job", "process", "gpu"]
    rows: Sequence[GpuSeconds]
    idle: Annotated[Sequence[IdleSpan], Field(means="times in which a GPU that was in use did next to nothing")]


def answer(recording: Recording, question: GpuQuestion) -> GpuAccount:
    """Raises QuestionError."""
    window = question.window.choose(recording)
    found = account(recording, window.start_us, window.end_us, question.by)
    return GpuAccount(recording.name, window, question.by, found.rows, found.idle)
