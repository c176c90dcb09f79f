"""What is counted in an isolation test: cgroups that the suspect makes, by the recorder's ledger.

Those that its unit or container made, where the ledger knows some; else those below its cgroup; else all of the node's.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from zombiescope.base.time import SECOND_US
from zombiescope.query.cgroups import CgroupHistory, Leak
from zombiescope.store.reader import Recording

_BACK_US = 120 * SECOND_US


@dataclass(frozen=True, slots=True)
class CreatedCgroups:
    opened: Callable[[], AbstractContextManager[Recording]]
    cgroup: str
    unit: str | None
    container: str | None

    def at(self, wall_s: float) -> float | None:
        at_us = round(wall_s * SECOND_US)
        with self.opened() as recording:
            if not recording.start_us <= at_us <= recording.end_us + 5 * SECOND_US:
                return None
            view = CgroupHistory(recording, at_us - _BACK_US, at_us).at(at_us)
        for belongs in (self._made_it, self._is_below):
            own = [leak.created for leak in view.leaks if belongs(leak) and leak.created is not None]
            if own:
                return float(sum(own))
        return None if view.memory is None or view.memory.created is None else float(view.memory.created)

    def _made_it(self, leak: Leak) -> bool:
        maker = leak.creator
        by_unit = self.unit is not None and maker.unit == self.unit
        return by_unit or (self.container is not None and maker.container == self.container)

    def _is_below(self, leak: Leak) -> bool:
        """Ids are * in the ledger's paths: those of other containers of the same shape count with its own then."""
        own, other = (path.strip("/").split("/") for path in (self.cgroup, leak.path))
        return len(other) >= len(own) and all(map(_is_named, own, other))


def _is_named(name: str, pattern: str) -> bool:
    head, star, tail = pattern.partition("*")
    return name == pattern or bool(star and name.startswith(head) and name.endswith(tail))
