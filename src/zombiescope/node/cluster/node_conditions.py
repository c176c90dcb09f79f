"""Conditions of our Node, where they are enabled: CoreStarvation, CgroupLeak, UnitCrashLoop, HardwareFault. True is
bad.

    True      an incident of that kind is open
    False     none is, and the doctor looks
    Unknown   nobody looks: no recorder, no fresh answer of the doctor, or the agent ended

lastTransitionTime changes with the status only, also when the agent was restarted: what the node says is read first.
Written when something changed, and every five minutes as a heartbeat. Types of other agents are never written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from zombiescope.node.cluster.incident_news import CONDITIONS, News, bounded

if TYPE_CHECKING:
    from lightkube import AsyncClient

HEARTBEAT_S = 300.0
QUIET_S = 120.0
"""An incident that is over holds its condition for so long: one that flaps every minute is one condition, not many."""


@dataclass(frozen=True, slots=True)
class Status:
    status: str
    reason: str
    message: str


class NodeConditions:
    def __init__(self, node: str, clock: Callable[[], float] = time.time) -> None:
        self._node = node
        self._clock = clock
        self._known: dict[str, dict[str, Any]] | None = None
        """As the node has them; None: not read yet."""
        self._written_s = 0.0
        self._last_bad: dict[str, tuple[float, Status]] = {}

    async def settle(self, client: AsyncClient, incidents: Iterable[News], blind: str | None) -> bool:
        """Writes what has to be written; whether that was anything. `blind`: why nobody knows."""
        if self._known is None:
            self._known = await self._read(client)
        wanted = self._wanted(incidents, blind)
        now_s = self._clock()
        changed = {kind for kind, status in wanted.items() if not _holds(self._known.get(kind), status)}
        if not changed and now_s - self._written_s < HEARTBEAT_S:
            return False
        documents = [self._document(kind, status, now_s) for kind, status in wanted.items()]
        await self._write(client, documents)
        self._known |= {one["type"]: one for one in documents}
        self._written_s = now_s
        return True

    def _wanted(self, incidents: Iterable[News], blind: str | None) -> dict[str, Status]:
        if blind is not None:
            return {kind: Status("Unknown", "NotMeasured", bounded(blind)) for kind in CONDITIONS}
        now_s = self._clock()
        for one in incidents:
            for kind in one.conditions if one.is_open else ():
                self._last_bad[kind] = (now_s, Status("True", one.reason, one.message))
        return {kind: self._of(kind, now_s) for kind in CONDITIONS}

    def _of(self, kind: str, now_s: float) -> Status:
        at_s, bad = self._last_bad.get(kind, (None, None))
        if at_s is not None and bad is not None and abs(now_s - at_s) < QUIET_S:
            return bad
        return Status("False", f"No{kind}", "no such incident is open")

    def _document(self, kind: str, status: Status, now_s: float) -> dict[str, Any]:
        known = (self._known or {}).get(kind)
        at = _stamp(now_s)
        since = known.get("lastTransitionTime") if known and known.get("status") == status.status else None
        return {
            "type": kind, "status": status.status, "reason": status.reason, "message": status.message,
            "lastHeartbeatTime": at, "lastTransitionTime": since or at,
        }  # fmt: skip

    async def _read(self, client: AsyncClient) -> dict[str, dict[str, Any]]:
        from lightkube.resources.core_v1 import Node

        node = (await client.get(Node, self._node)).to_dict()
        listed = node.get("status", {}).get("conditions", [])
        return {str(one.get("type")): dict(one) for one in listed if one.get("type") in CONDITIONS}

    async def _write(self, client: AsyncClient, documents: list[dict[str, Any]]) -> None:
        from lightkube.resources.core_v1 import NodeStatus
        from lightkube.types import PatchType

        patch = {"status": {"conditions": documents}}
        await client.patch(NodeStatus, self._node, patch, patch_type=PatchType.STRATEGIC)


def _holds(known: Mapping[str, Any] | None, status: Status) -> bool:
    return known is not None and (known.get("status"), known.get("reason")) == (status.status, status.reason)


def _stamp(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
