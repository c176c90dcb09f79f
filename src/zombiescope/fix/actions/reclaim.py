"""Removed cgroups that page cache keeps are released: reclaim from their surviving parent, in pieces, with a limit.

It runs in a process of its own on cores that serve no network card. What tmpfs keeps is refused, not tried.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from zombiescope.fix import quiet_cores, reclaim_worker
from zombiescope.fix.reclaim import LIMIT_S, Parent, Reclaimed, parent_at, pieces, refusal, word
from zombiescope.fix.reclaim_cost import cost
from zombiescope.fix.step import ActionFailedError, bounded
from zombiescope.kernel.cgroup import directory, hierarchies, of_controller
from zombiescope.kernel.cpu import format_list

_DONE: dict[str, Reclaimed] = {}
"""What this process released: a cgroup that something else keeps is no reason to say that it was not done."""


_FEW = 100
"""Cgroups that the rest of the node makes meanwhile."""


@dataclass(frozen=True, slots=True)
class ReclaimZombies:
    cgroup: str
    """The surviving parent, from the root of the memory hierarchy."""
    kind: ClassVar[str] = "zombies.reclaim"

    def __post_init__(self) -> None:
        if not isinstance(self.cgroup, str) or not self.cgroup.startswith("/") or ".." in self.cgroup.split("/"):
            raise ValueError(f"{self.cgroup!r} is not a cgroup path")

    def arguments(self) -> dict[str, Any]:
        return {"cgroup": self.cgroup}

    def command(self) -> tuple[str, ...] | None:
        parent = self._parent()
        write = f"echo {shlex.quote(word(parent.version))} > {shlex.quote(parent.file or '')}"
        if parent.version != 1:
            write = f"for n in $(seq {pieces(parent)}); do {write} || break; done"
        cores = format_list(quiet_cores.quiet_cores())
        return ("timeout", f"{LIMIT_S:.0f}", *(("taskset", "-c", cores) if cores else ()), "sh", "-c", write)

    def touches(self) -> tuple[str, ...]:
        parent = self._possible()
        cores = format_list(quiet_cores.quiet_cores())
        lines = [f"{parent.file}, for at most {LIMIT_S:.0f} s"]
        if parent.held is None:
            lines.append("this kernel does not show what keeps them, or how much cache live cgroups lose")
        else:
            lines.append(f"{parent.held.file_bytes:,} bytes of page cache that removed cgroups hold")
            lines += cost(parent).lines
        lines.append(f"one of the cores {cores}, which serve no network card" if cores else _NO_QUIET_CORE)
        return bounded(lines)

    def before(self) -> dict[str, Any]:
        parent = self._parent()
        held = parent.held
        return {
            "memory_cgroups": parent.count(),
            "file_bytes": None if held is None else held.file_bytes,
            "shmem_bytes": None if held is None else held.shmem_bytes,
        }

    def is_applied(self) -> bool:
        parent = self._parent()
        if self._was_done(parent.count()):
            return True
        if parent.version == 2:
            return parent.count() == 0
        return parent.held is not None and parent.held.file_bytes == 0

    def _was_done(self, now: int | None) -> bool:
        """By this process, and as many have not come since: the rest is kept by something else."""
        made = _DONE.get(self.cgroup)
        return made is not None and now is not None and now <= made.after + max(_FEW, made.freed // 10)

    def apply(self) -> None:
        parent = self._possible()
        try:
            made = reclaim_worker.reclaim(parent, quiet_cores.quiet_cores(), LIMIT_S)
        except OSError as error:
            raise ActionFailedError(f"{parent.file}: {error.strerror or error}") from error
        if not made.freed:
            why = f"{made.seconds:.1f} s of reclaiming from {self.cgroup} released no cgroup: {made.ended}"
            raise ActionFailedError(f"{why}; something else than page cache keeps them")
        _DONE[self.cgroup] = made

    def undo(self, before: Mapping[str, Any]) -> None:
        """The cache fills again as files are read; the cgroups were gone for whoever made them."""

    def _parent(self) -> Parent:
        hierarchy = of_controller("memory", hierarchies())
        place = None if hierarchy is None else directory(hierarchy, self.cgroup)
        if hierarchy is None or place is None:
            raise ActionFailedError(f"the memory cgroup {self.cgroup} is gone; plan again")
        return parent_at(hierarchy, self.cgroup, place)

    def _possible(self) -> Parent:
        parent = self._parent()
        if (why := refusal(parent)) is not None:
            raise ActionFailedError(why)
        return parent


_NO_QUIET_CORE = "a core that serves a network card, because all do; it runs at the lowest priority"

ACTIONS = (ReclaimZombies,)
