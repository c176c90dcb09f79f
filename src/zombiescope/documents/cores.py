"""Each core over a window, and each GPU where that is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from zombiescope.documents import gpus as gpu_documents
from zombiescope.query.cores import MODES, Core, CoresView, Modes, cores
from zombiescope.query.gpus import Gpu, gpus
from zombiescope.questions.views import CoresQuestion
from zombiescope.questions.window import Window
from zombiescope.store.reader import Recording


@dataclass(frozen=True, slots=True)
class CoresAnswer:
    recording: Recording
    window: Window
    view: CoresView
    shown: Sequence[Core]
    gpus: Sequence[Gpu] | None = None
    """If they were asked for."""

    def document(self) -> dict[str, Any]:
        return {
            "node": self.recording.name,
            "from": self.window.start_us / 1e6,
            "to": self.window.end_us / 1e6,
            "interval_s": self.view.interval_s,
            "aggregate": _modes(self.view.aggregate),
            "cores": [_core(core) for core in self.shown],
            "gpus": None if self.gpus is None else [gpu_documents.gpu(gpu) for gpu in self.gpus],
        }


def answer(recording: Recording, question: CoresQuestion) -> CoresAnswer:
    """Raises QuestionError."""
    window = question.window.choose(recording)
    view = cores(recording, window.start_us, window.end_us)
    found = gpus(recording, window.start_us, window.end_us) if question.gpu else None
    return CoresAnswer(recording, window, view, _order(view, question.hottest), found)


def _order(view: CoresView, hottest: int | None) -> list[Core]:
    """All of them, or the few that the kernel held longest."""
    if hottest is None:
        return list(view.cores)
    by_heat = sorted(view.cores, key=lambda core: (-(core.longest_saturation_s or 0), -_kernel(core.modes), core.cpu))
    return by_heat[:hottest]


def _kernel(modes: Modes) -> float:
    return (modes.system or 0) + (modes.irq or 0) + (modes.softirq or 0)


def _core(core: Core) -> dict[str, Any]:
    busiest = core.busiest
    return {
        "cpu": core.cpu,
        **_modes(core.modes),
        "longest_saturation_s": core.longest_saturation_s,
        "longest_busy_s": core.longest_busy_s,
        "busiest": None if busiest is None else {"at": busiest.at_us / 1e6, "busy": busiest.busy},
    }


def _modes(modes: Modes) -> dict[str, float | None]:
    return {mode: getattr(modes, mode) for mode in (*MODES, "busy")}
