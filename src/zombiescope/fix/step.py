"""What can go wrong with a step, beside the step itself, which is a value and lives in plans/.

An action is one file in actions/, which holds a frozen dataclass of plain arguments: the log stores `kind` and these,
so that another process can undo tomorrow what this one did. Actions are idempotent: `apply` on a machine where it is
done already changes nothing, and so does `undo` where nothing is left to go back from.
"""

from __future__ import annotations

from zombiescope.base.errors import UserError
from zombiescope.model.plans.step import Action, Kind, Part, State, Step, bounded, quoted

__all__ = ["Action", "ActionFailedError", "Kind", "Part", "State", "Step", "bounded", "quoted"]


class ActionFailedError(UserError):
    """A step could not be done, or not be undone; `what` says why in one line."""
