"""Parts that fail and work again, as news: for Events and the webhook.

A part that crashes and is started again every few seconds is one piece of news, not many: it has recovered when it has
worked without a failure for QUIET_S.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from zombiescope.agent.node_parts import BAD
from zombiescope.store.health import RECORDER, Part

QUIET_S = 60.0


@dataclass(frozen=True, slots=True)
class PartChange:
    kind: Literal["failed", "recovered"]
    part: Part
    identity: str
    """The same for the failure and for its end."""


@dataclass(slots=True)
class _Failure:
    identity: str
    works_since_s: float | None = None


class PartWatch:
    """One for each service that follows. `failed_before`: parts whose failure was reported before this process ran."""

    quiet_s = QUIET_S

    def __init__(
        self,
        read: Callable[[], list[Part]],
        failed_before: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read, self._clock = read, clock
        self._failures: dict[str, int] = {}
        self._down = {name: _Failure(name) for name in failed_before}
        self.failed: dict[str, Part] = {}
        """Reported as failed, and not yet as recovered."""

    def poll(self) -> list[PartChange]:
        parts = {part.name: part for part in self._read()}
        changes = [change for part in parts.values() if (change := self._judge(part))]
        recorder = parts.get(RECORDER)
        if recorder is not None and recorder.state == "ok":
            # A recorder that works and does not name a part has none of this name any more.
            gone = [Part(name, "off", time.time()) for name in self._down.keys() - parts.keys()]
            changes += [change for part in gone if (change := self._judge(part))]
        return changes

    def _judge(self, part: Part) -> PartChange | None:
        # One that crashed and was started again between two polls looks well, but has counted it.
        rose = part.failures > self._failures.get(part.name, part.failures)
        self._failures[part.name] = part.failures
        if part.state in BAD or rose:
            return self._fails(part)
        known, now_s = self._down.get(part.name), self._clock()
        if known is None:
            return None
        known.works_since_s = now_s if known.works_since_s is None else known.works_since_s
        if now_s - known.works_since_s < self.quiet_s:
            return None
        del self._down[part.name]
        self.failed.pop(part.name, None)
        return PartChange("recovered", part, known.identity)

    def _fails(self, part: Part) -> PartChange | None:
        works_since_s = None if part.state in BAD else self._clock()
        known = self._down.get(part.name)
        self.failed[part.name] = part
        if known is not None:
            known.works_since_s = works_since_s
            return None
        self._down[part.name] = _Failure(f"{part.name} {part.since:.0f}", works_since_s)
        return PartChange("failed", part, self._down[part.name].identity)
