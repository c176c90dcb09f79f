"""What changed between two windows, or between two recordings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zombiescope.documents.flamegraph import Reference
from zombiescope.documents.selection import selected
from zombiescope.query import flame
from zombiescope.query.cgroups import CgroupsView, cgroups
from zombiescope.query.comparison import Comparison, FunctionChange, OwnerChange, compare
from zombiescope.query.cores import CoresView, cores
from zombiescope.query.flame import Tree
from zombiescope.query.selection import Selection
from zombiescope.questions.filters import words
from zombiescope.questions.views import DiffQuestion
from zombiescope.questions.window import Window
from zombiescope.store.reader import Recording


@dataclass(frozen=True, slots=True)
class Compared:
    """One of the two."""

    window: Window
    selection: Selection

    @property
    def recording(self) -> Recording:
        return self.selection.recording

    @property
    def heading(self) -> str:
        return f"{self.recording.name}  {self.window.heading()}"

    def cores(self) -> CoresView:
        return cores(self.recording, self.window.start_us, self.window.end_us)

    def cgroups(self) -> CgroupsView:
        return cgroups(self.recording, self.window.start_us, self.window.end_us)

    def document(self, samples: int) -> dict[str, Any]:
        return {
            "node": self.recording.name,
            "from": self.window.start_us / 1e6,
            "to": self.window.end_us / 1e6,
            "samples": samples,
        }


@dataclass(frozen=True, slots=True)
class Difference:
    question: DiffQuestion
    before: Compared
    after: Compared
    found: Comparison

    @property
    def title(self) -> str:
        said = words(self.after.selection.filters)
        return f"{self.after.heading}  against {self.before.heading}" + (f"  {said}" if said else "")

    def both(self) -> Selection:
        """What it is now, over the stacks of both."""
        now = self.after.selection
        return Selection(now.recording, *now.span, now.filters, self.found.stacks)

    def tree(self) -> Tree:
        """The differential flame graph."""
        return flame.fold(self.found.stacks, self.found.counts_after, self.found.counts_before)

    def reference(self) -> Reference:
        return Reference(self.before.window, self.found.counts_before)

    def document(self) -> dict[str, Any]:
        found, top = self.found, self.question.top
        old, new = self.before, self.after
        return {
            "a": old.document(found.samples_before),
            "b": new.document(found.samples_after),
            "cores": _cores_document(old.cores(), new.cores()),
            "units": [_unit_document(change) for change in found.owners[:top]],
            "functions": [_function_document(change) for change in found.functions[:top]],
            "cgroups": {"a": _cgroups_document(old.cgroups()), "b": _cgroups_document(new.cgroups())},
        }


def answer(before: tuple[Recording, Window], after: tuple[Recording, Window], question: DiffQuestion) -> Difference:
    """Two windows, of one recording or of two. Raises QuestionError."""
    filters = question.filters.chosen()
    old, new = (Compared(window, selected(recording, window, filters)) for recording, window in (before, after))
    return Difference(question, old, new, compare(old.selection, new.selection))


def _cores_document(old: CoresView, new: CoresView) -> dict[str, Any]:
    by_cpu = {core.cpu: core for core in old.cores}
    modes = ("user", "nice", "system", "irq", "softirq", "steal", "iowait", "idle", "busy")
    return {
        "aggregate": {mode: _pair(getattr(old.aggregate, mode), getattr(new.aggregate, mode)) for mode in modes},
        "cores": [
            {
                "cpu": core.cpu,
                "busy": _pair(before.modes.busy if before else None, core.modes.busy),
                "longest_saturation_s": _pair(
                    before.longest_saturation_s if before else None, core.longest_saturation_s
                ),
            }
            for core in new.cores
            for before in (by_cpu.get(core.cpu),)
        ],
    }


def _pair(before: float | None, after: float | None) -> dict[str, float | None]:
    delta = None if before is None or after is None else after - before
    return {"a": before, "b": after, "delta": delta}


def _unit_document(change: OwnerChange) -> dict[str, Any]:
    return {
        "name": change.name,
        "kind": change.kind,
        "cores": _pair(change.before.cores, change.after.cores),
        "ratio": _pair(change.before.ratio, change.after.ratio),
    }


def _function_document(change: FunctionChange) -> dict[str, Any]:
    return {
        "name": change.function.name,
        "module": change.function.module,
        "kind": change.function.kind,
        "self_ratio": _pair(change.self_before, change.self_after),
        "total_ratio": _pair(change.total_before, change.total_after),
    }


def _cgroups_document(view: CgroupsView) -> dict[str, Any]:
    memory = view.memory
    return {
        "total": memory.total if memory else None,
        "live": memory.live if memory else None,
        "dying": memory.dying if memory else None,
        "growth_per_hour": view.growth_per_hour,
        "verdict": view.verdict,
    }
