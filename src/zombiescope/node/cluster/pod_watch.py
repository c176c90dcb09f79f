"""The pods of this node, followed: listed page by page, then watched; listed again where the watch cannot go on.

What is kept of a pod is `pod.Pod`, a few hundred bytes. A list replaces what was known, and what differs are changes:
so an hour without the API server loses nothing but what came and went in it, and the number of restarts says even that.

A watch is asked to end every few minutes by the server itself. One that says nothing for longer than that is a
connection that was cut without a word, and is made anew.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from zombiescope.node.cluster import access
from zombiescope.node.cluster.backoff import Backoff, Outage
from zombiescope.node.cluster.changes import PodEvent, changes
from zombiescope.node.cluster.pod import Pod, parse

if TYPE_CHECKING:
    from lightkube import AsyncClient

MAX_PODS = 4096
"""kubelet takes 110, large nodes 500; a node name that fits everything must not cost more than this."""
PAGE = 100
WATCH_S = 240
SILENCE_S = 300.0
_GONE = 410


class PodWatch:
    """`on_pod` gets each pod that is new or has changed, `on_gone` each that is no more, `on_event` what happened."""

    def __init__(
        self,
        node: str,
        *,
        on_pod: Callable[[Pod], None],
        on_gone: Callable[[Pod], None],
        on_event: Callable[[PodEvent], None],
        say: Callable[[str], None],
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Any] = asyncio.sleep,
    ) -> None:
        self.node = node
        self.pods: dict[str, Pod] = {}
        self.refused = 0
        """Over the bound: not followed."""
        self.synced_at: float | None = None
        """When the server last told us something, by our clock."""
        self.outage = Outage(say)
        self._on_pod, self._on_gone, self._on_event = on_pod, on_gone, on_event
        self._clock, self._sleep = clock, sleep
        self._backoff = Backoff()

    async def run(self, connect: Callable[[], AsyncClient]) -> None:
        """Until cancelled. A client is made anew after every failure: its certificates and its token may be other ones
        by then."""
        while True:
            client = None
            try:
                client = connect()
                await self._follow(client)
            except access.any_trouble() as error:
                if access.status_code(error) != _GONE:
                    self.outage.failed(error, f"reading the pods of {self.node}")
                await self._sleep(self._backoff.delay_s(error))
            finally:
                if client is not None:
                    await client.close()

    async def _follow(self, client: AsyncClient) -> None:
        version = await self._list(client)
        self._heard()
        stream = self._stream(client, version)
        while True:
            try:
                async with asyncio.timeout(SILENCE_S):
                    kind, document = await anext(stream)
            except TimeoutError:
                return  # cut without a word: listed again
            except StopAsyncIteration:
                return
            self._heard()
            if kind in ("ADDED", "MODIFIED"):
                self._put(document)
            elif kind == "DELETED":
                self._remove(str(document.get("metadata", {}).get("uid")), document)

    def _heard(self) -> None:
        self.synced_at = self._clock()
        self._backoff.worked()
        self.outage.worked()

    async def _list(self, client: AsyncClient) -> str:
        from lightkube.resources.core_v1 import Pod as PodResource

        there: set[str] = set()
        pages = client.list(PodResource, namespace="*", chunk_size=PAGE, fields={"spec.nodeName": self.node})
        async for item in pages:
            there.add(self._put(item.to_dict()))
        for uid in [uid for uid in self.pods if uid not in there]:
            self._remove(uid)
        return pages.resourceVersion

    def _stream(self, client: AsyncClient, version: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        from lightkube.resources.core_v1 import Pod as PodResource

        async def documents() -> AsyncIterator[tuple[str, dict[str, Any]]]:
            watch = client.watch(
                PodResource, namespace="*", fields={"spec.nodeName": self.node}, server_timeout=WATCH_S,
                resource_version=version,
            )  # fmt: skip
            async for kind, item in watch:
                yield kind, item.to_dict()

        return documents()

    def _put(self, document: dict[str, Any]) -> str:
        pod = parse(document)
        if pod is None:
            return ""
        old = self.pods.get(pod.uid)
        if old is None and len(self.pods) >= MAX_PODS:
            self.refused += 1
            return pod.uid
        if old == pod:
            return pod.uid
        self.pods[pod.uid] = pod
        self._on_pod(pod)
        for event in changes(old, pod, round(self._clock() * 1e6)):
            self._on_event(event)
        return pod.uid

    def _remove(self, uid: str, document: dict[str, Any] | None = None) -> None:
        """What it was last may tell why it went."""
        if document is not None and uid in self.pods:
            self._put(document)
        pod = self.pods.pop(uid, None)
        if pod is not None:
            self._on_gone(pod)
