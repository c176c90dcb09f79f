"""What the log says about the steps of one plan: which are done, by whom, and which were interrupted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from zombiescope.model.plans.log_entry import Entry
from zombiescope.model.plans.step import State

_STATES: dict[str, State] = {
    "applying": "failed", "applied": "applied", "found": "applied", "failed": "failed", "skipped": "skipped",
    "undoing": "failed", "undone": "undone", "undo-failed": "failed",
}  # fmt: skip
_UNFINISHED = {"applying": "was interrupted while it was applied", "undoing": "was interrupted while it was undone"}


@dataclass(frozen=True, slots=True)
class StepHistory:
    step: str
    action: dict[str, Any]
    """Kind and arguments."""
    event: str
    """The last that was logged."""
    at: float
    why: str = ""
    before: dict[str, Any] | None = None
    """How it was before we first touched it; None where we have not, or all of it is undone."""

    @property
    def is_ours(self) -> bool:
        """Whether there is something to undo, though it may be half done."""
        return self.before is not None

    @property
    def state(self) -> State:
        return _STATES[self.event]

    @property
    def told(self) -> str:
        return self.why or _UNFINISHED.get(self.event, "")


def of(entries: Iterable[Entry], target: str) -> dict[str, StepHistory]:
    """By step, in the order in which they were first done."""
    found: dict[str, StepHistory] = {}
    for entry in entries:
        if entry.target == target and entry.event in _STATES and entry.action is not None:
            found[entry.step] = _after(found.get(entry.step), entry)
    return found


def _after(known: StepHistory | None, entry: Entry) -> StepHistory:
    before = known.before if known is not None else None
    if entry.event == "applying" and before is None:
        before = entry.before
    elif entry.event == "undone":
        before = None
    return StepHistory(entry.step, entry.action or {}, entry.event, entry.at, entry.why, before)


def targets(entries: Iterable[Entry]) -> dict[str, float]:
    """Every plan that was worked on, and when last."""
    return {entry.target: entry.at for entry in entries}
