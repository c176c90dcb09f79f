"""The threads of a hog are moved off the cores that serve a network card: a stop-gap while the cause is looked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from zombiescope.fix import affinity
from zombiescope.fix.affinity import ThreadCpus
from zombiescope.fix.step import ActionFailedError, bounded
from zombiescope.kernel.cpu import format_list
from zombiescope.kernel.process import read_stat


@dataclass(frozen=True, slots=True)
class MoveHog:
    pid: int
    start_time_ticks: int
    cores: tuple[int, ...]
    """That it leaves."""
    kind: ClassVar[str] = "hog.move"

    def __post_init__(self) -> None:
        object.__setattr__(self, "cores", tuple(sorted(int(cpu) for cpu in self.cores)))

    def arguments(self) -> dict[str, Any]:
        return {"pid": self.pid, "start_time_ticks": self.start_time_ticks, "cores": list(self.cores)}

    def command(self) -> tuple[str, ...] | None:
        left = {cpu for one in affinity.threads(self.pid) for cpu in one.cpus} - set(self.cores)
        return ("taskset", "-a", "-c", "-p", format_list(left), str(self.pid)) if left else None

    def touches(self) -> tuple[str, ...]:
        self._require()
        return bounded([affinity.cost(self.pid, frozenset(self.cores))])

    def before(self) -> dict[str, Any]:
        self._require()
        return {"threads": [asdict(one) for one in affinity.threads(self.pid)]}

    def is_applied(self) -> bool:
        self._require()
        return affinity.is_away(self.pid, frozenset(self.cores))

    def apply(self) -> None:
        self._require()
        try:
            affinity.move_away(self.pid, frozenset(self.cores))
        except OSError as error:
            raise ActionFailedError(f"a thread of pid {self.pid} could not be moved: {error.strerror}") from error

    def undo(self, before: Mapping[str, Any]) -> None:
        """A process that ended took it along; one that has its number now is left alone."""
        stat = read_stat(self.pid)
        if stat is not None and stat.start_time_ticks == self.start_time_ticks:
            said = before.get("threads") or ()
            known = [ThreadCpus(one["tid"], one["start_time_ticks"], tuple(one["cpus"])) for one in said]
            affinity.move_back(self.pid, known, frozenset(self.cores))

    def _require(self) -> None:
        stat = read_stat(self.pid)
        if stat is None or stat.start_time_ticks != self.start_time_ticks:
            raise ActionFailedError(f"the process {self.pid} has ended")


ACTIONS = (MoveHog,)
