"""Each core over a window, and each GPU where that is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zombiescope.model.modes import Modes, ModesBusy
from zombiescope.query.cores import Core, cores
from zombiescope.query.gpus import Gpu, gpus
from zombiescope.questions.views import CoresQuestion
from zombiescope.questions.window import WindowAnswer
from zombiescope.store.reader import Recording


@dataclass(frozen=True, slots=True)
class Cores(WindowAnswer):
    """`gpus` is null unless requested."""

    interval_s: float | None
    aggregate: ModesBusy
    cores: Sequence[Core]
    gpus: Sequence[Gpu] | None


def answer(recording: Recording, question: CoresQuestion) -> Cores:
    """Raises QuestionError."""
    window = question.window.choose(recording)
    view = cores(recording, window.start_us, window.end_us)
    found = gpus(recording, window.start_us, window.end_us) if question.gpu else None
    shown = _hottest(view.cores, question.hottest)
    return Cores(recording.name, window, view.interval_s, view.aggregate, shown, found)


def _hottest(found: Sequence[Core], most: int | None) -> Sequence[Core]:
    """All of them, or the few that the kernel held longest."""
    by_heat = sorted(found, key=lambda core: (-(core.longest_saturation_s or 0), -_kernel(core.modes), core.cpu))
    return found if most is None else by_heat[:most]


def _kernel(modes: Modes) -> float:
    return (modes.system or 0) + (modes.irq or 0) + (modes.softirq or 0)
