"""A suspect is frozen for an isolation test. In the log, so that `fix --undo` lets it go if all else fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from zombiescope.fix import freezer
from zombiescope.fix.freezer import Frozen
from zombiescope.fix.step import ActionFailedError, bounded
from zombiescope.kernel.process import read_stat


@dataclass(frozen=True, slots=True)
class FreezeSuspect:
    frozen: str
    """A Frozen, as JSON."""
    kind: ClassVar[str] = "trial.freeze"

    def __post_init__(self) -> None:
        Frozen.from_json(self.frozen)  # ValueError, KeyError or TypeError where it is none

    def arguments(self) -> dict[str, Any]:
        return {"frozen": self.frozen}

    def command(self) -> tuple[str, ...] | None:
        return None

    def touches(self) -> tuple[str, ...]:
        found = (read_stat(pid) for pid in freezer.pids(self._it.directory))
        return bounded([f"{stat.comm} (pid {stat.pid}) is paused" for stat in found if stat is not None])

    def before(self) -> dict[str, Any]:
        return {"frozen": freezer.is_frozen(self._it)}

    def is_applied(self) -> bool:
        return freezer.is_frozen(self._it)

    def apply(self) -> None:
        try:
            freezer.freeze(self._it)
        except OSError as error:
            raise ActionFailedError(f"{self._it.directory}: {error}") from error

    def undo(self, before: Mapping[str, Any]) -> None:
        """It was running before, or nobody would have tried."""
        if not before.get("frozen"):
            freezer.thaw(self._it)

    @property
    def _it(self) -> Frozen:
        return Frozen.from_json(self.frozen)


ACTIONS = (FreezeSuspect,)
