"""Going back: what the log says that we did, the last first, each to how it was before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from zombiescope.fix.actions import make
from zombiescope.fix.log import ActionLog
from zombiescope.fix.step import ActionFailedError
from zombiescope.model.plans import history
from zombiescope.model.plans.history import StepHistory


@dataclass(frozen=True, slots=True)
class Undone:
    step: str
    ok: bool
    why: str = ""


Which = Callable[[StepHistory], bool]


def open_steps(log: ActionLog, target: str, which: Which = lambda _: True) -> list[StepHistory]:
    """What of a plan can be undone, in the order in which that is done."""
    return [one for one in reversed(history.of(log.entries(), target).values()) if one.is_ours and which(one)]


def undo(log: ActionLog, target: str, consent: Which, which: Which = lambda _: True) -> Iterator[Undone]:
    """All that can be; one that fails does not keep the others from being tried: each stands for itself."""
    for one in open_steps(log, target, which):
        if consent(one):
            yield _one(log, target, one)


def _one(log: ActionLog, target: str, one: StepHistory) -> Undone:
    log.append(target, "undoing", one.step, action=one.action, before=one.before)
    try:
        action = make(str(one.action.get("kind")), one.action.get("arguments") or {})
        action.undo(one.before or {})
    except ActionFailedError as error:
        return _failed(log, target, one, str(error))
    except (TypeError, ValueError, KeyError, AttributeError) as error:  # of another version, or damaged
        return _failed(log, target, one, f"what the log says of how it was before cannot be used: {error!r}")
    log.append(target, "undone", one.step, action=one.action, before=one.before)
    return Undone(one.step, ok=True)


def _failed(log: ActionLog, target: str, one: StepHistory, why: str) -> Undone:
    log.append(target, "undo-failed", one.step, action=one.action, before=one.before, why=why)
    return Undone(one.step, ok=False, why=why)
