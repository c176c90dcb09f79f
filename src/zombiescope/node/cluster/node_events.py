"""Events on our Node, for incidents and for parts of zombiescope that fail, and on each RayJob that died of an
incident: `kubectl describe` shows them.

The same cause again within an hour is the same Event with a higher count, as kubelet does it. The name of an Event is
made from the incident, so an agent that was restarted does not tell twice. At most BURST at once and one a minute after
that; what was held back is counted in the next one.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from zombiescope.node.cluster import access
from zombiescope.node.cluster.incident_news import News, bounded

if TYPE_CHECKING:
    from lightkube import AsyncClient

NAMESPACE = "default"
"""Where Events about Nodes are: a Node is in no namespace."""
BURST = 10
EVERY_S = 60.0
SAME_S = 3600.0
"""The API server itself forgets an Event after an hour."""
MAX_TOLD = 1000
_CONFLICT, _MISSING = 409, 404


@dataclass(slots=True)
class _Told:
    name: str
    count: int
    at_s: float


class NodeEvents:
    def __init__(self, node: str, clock: Callable[[], float] = time.time) -> None:
        self._node = node
        self._clock = clock
        self._told: OrderedDict[tuple[str, bool], None] = OrderedDict()
        """(incident, whether it was open): those of which the cluster knows."""
        self._same: dict[tuple[str, str], _Told] = {}
        """(reason, subject) -> the Event that counts it."""
        self._allowance, self._filled_s = float(BURST), clock()
        self.held_back = 0

    async def tell(self, client: AsyncClient, news: News) -> bool:
        """Whether the cluster knows of it now. Raises what a client raises; then it is not told, and may be again."""
        key = (news.id, news.is_open)
        if key in self._told or (not news.is_open and (news.id, True) not in self._told):
            return True  # told, or over before anybody was told
        if not self._may_tell():
            self.held_back += 1
            self._note(key)
            return False
        await self._write(client, news)
        self._note(key)
        self.held_back = 0
        return True

    def _may_tell(self) -> bool:
        now_s = self._clock()
        earned = max(0.0, now_s - self._filled_s) / EVERY_S  # a clock that is set back earns nothing
        self._allowance, self._filled_s = min(float(BURST), self._allowance + earned), now_s
        if self._allowance < 1.0:
            return False
        self._allowance -= 1.0
        return True

    def _note(self, key: tuple[str, bool]) -> None:
        self._told[key] = None
        while len(self._told) > MAX_TOLD:
            self._told.popitem(last=False)

    async def _write(self, client: AsyncClient, news: News) -> None:
        reason = news.reason if news.is_open else news.over_reason or f"{news.reason}Over"
        same = (reason, news.subject)
        before, now_s = self._same.get(same), self._clock()
        if before is not None and now_s - before.at_s < SAME_S and await self._repeat(client, before, news):
            before.count, before.at_s = before.count + 1, now_s
            return
        name = f"{self._node[:200]}.{_digest(self._node, news.id, reason)}"
        await self._create(client, name, reason, news)
        self._same = {key: told for key, told in self._same.items() if now_s - told.at_s < SAME_S}
        self._same[same] = _Told(name, 1, now_s)

    async def _create(self, client: AsyncClient, name: str, reason: str, news: News) -> None:
        from lightkube.resources.core_v1 import Event

        at = _stamp(self._clock())
        about = {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": self._node}
        if news.about is not None:
            one = news.about
            about = {"apiVersion": one.api_version, "kind": one.kind, "name": one.name, "uid": one.uid}
            about["namespace"] = one.namespace
        event = access.resource(
            Event,
            {
                "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": _namespace(news)},
                "involvedObject": about, "reason": reason, "message": self._message(news),
                "type": "Warning" if news.is_open else "Normal", "count": 1, "firstTimestamp": at, "lastTimestamp": at,
                "source": {"component": access.NAME, "host": self._node},
                "reportingComponent": access.NAME, "reportingInstance": self._node,
            }
        )  # fmt: skip
        try:
            await client.create(event)
        except access.trouble() as error:
            if access.status_code(error) != _CONFLICT:
                raise  # 409: we told it before we were restarted

    async def _repeat(self, client: AsyncClient, told: _Told, news: News) -> bool:
        from lightkube.resources.core_v1 import Event
        from lightkube.types import PatchType

        patch: dict[str, Any] = {
            "count": told.count + 1, "lastTimestamp": _stamp(self._clock()), "message": self._message(news),
        }  # fmt: skip
        try:
            await client.patch(Event, told.name, patch, namespace=_namespace(news), patch_type=PatchType.MERGE)
        except access.trouble() as error:
            if access.status_code(error) != _MISSING:
                raise
            return False
        return True

    def _message(self, news: News) -> str:
        more = f" ({self.held_back} more were not reported: too many)" if self.held_back else ""
        text = news.message if news.is_open or news.over_reason is not None else f"over: {news.message}"
        return bounded(text)[: 1000 - len(more)] + more


def _namespace(news: News) -> str:
    return NAMESPACE if news.about is None else news.about.namespace


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:16]


def _stamp(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
