"""The RayJobs and RayClusters whose pods are on this node, one watch each.

A watch of one object by its name costs the API server less than a question every few seconds, and says at once what
changed. Which objects there are is read off the pods (their labels): no namespace is listed. An object is followed for
some minutes after its last pod has gone: a job fails because its pods did.

Where KubeRay is not installed (404), or its objects may not be read (403), that is said once, and asked again more and
more rarely. Not at once: a server that was started anew answers 404 for CRDs until it has read its own tables.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from zombiescope.node.cluster import access
from zombiescope.node.cluster.backoff import Backoff
from zombiescope.node.cluster.changes import PodEvent
from zombiescope.node.cluster.incident_news import Subject
from zombiescope.node.cluster.pod import Pod
from zombiescope.node.cluster.ray_object import PLURALS, RAY_CLUSTER, RAY_JOB, RayObject, changes, parse

if TYPE_CHECKING:
    from lightkube import AsyncClient

Key = tuple[str, str, str]
"""Kind, namespace, name."""
GROUP, VERSION = "ray.io", "v1"
MAX_OBJECTS = 16
LINGER_S = 300.0
WATCH_S = 240
SILENCE_S = 300.0
FIRST_REFUSED_S, MOST_REFUSED_S = 5.0, 600.0
SAID_AFTER = 4
"""Refusals in a row: half a minute."""
_REFUSED = (403, 404)


def wanted(pods: Iterable[Pod]) -> set[Key]:
    found: set[Key] = set()
    for pod in pods:
        if pod.ray_cluster is not None:
            found.add((RAY_CLUSTER, pod.namespace, pod.ray_cluster))
        if pod.owner is not None and pod.owner.kind == RAY_JOB:
            found.add((RAY_JOB, pod.namespace, pod.owner.name))
    return found


class RayWatch:
    """`on_event` gets what happened. Every task of it ends with `close`."""

    def __init__(
        self, connect: Callable[[], AsyncClient], on_event: Callable[[PodEvent], None], say: Callable[[str], None]
    ) -> None:
        self._connect, self._on_event, self._say = connect, on_event, say
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._wanted_s: dict[Key, float] = {}
        self._said: set[int | None] = set()
        self.known: dict[Key, RayObject] = {}

    def follow(self, pods: Iterable[Pod]) -> None:
        """Called every second or so, from the event loop."""
        now_s, keys = time.monotonic(), wanted(pods)
        for key in sorted(keys):
            self._wanted_s[key] = now_s
            if key not in self._tasks and len(self._tasks) < MAX_OBJECTS:
                self._tasks[key] = asyncio.create_task(self._run(key))
        for key in [key for key, at_s in self._wanted_s.items() if now_s - at_s > LINGER_S]:
            self._drop(key)

    def jobs(self) -> dict[str, Subject]:
        """The RayJobs that are followed, by the name under which Ray knows each."""
        return {
            one.job_id: Subject(f"{GROUP}/{VERSION}", RAY_JOB, one.namespace, one.name, one.uid)
            for one in self.known.values()
            if one.kind == RAY_JOB and one.job_id is not None and one.uid is not None
        }

    def _drop(self, key: Key) -> None:
        del self._wanted_s[key]
        self.known.pop(key, None)
        if task := self._tasks.pop(key, None):
            task.cancel()

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()

    # --- one object ---------------------------------------------------------------------------------------------------

    async def _run(self, key: Key) -> None:
        backoff, refusals = Backoff(), 0
        while True:
            client, wait_s = None, 1.0
            try:
                client = self._connect()
                await self._watch(client, key, backoff)
                refusals = 0
            except access.any_trouble() as error:
                refused = access.status_code(error) in _REFUSED
                refusals = refusals + 1 if refused else 0
                wait_s = self._refused(error, key, refusals) if refused else backoff.delay_s(error)
            finally:
                if client is not None:
                    await client.close()
            await asyncio.sleep(wait_s)

    def _refused(self, error: BaseException, key: Key, refusals: int) -> float:
        """How long to wait."""
        code = access.status_code(error)
        if refusals >= SAID_AFTER and code not in self._said:
            self._said.add(code)
            self._say(f"{PLURALS[key[0]]} are not followed: {access.brief(error)}")
        return min(MOST_REFUSED_S, FIRST_REFUSED_S * 2.0 ** min(refusals - 1, 20))

    async def _watch(self, client: AsyncClient, key: Key, backoff: Backoff) -> None:
        """Until the server ends it. Its first word is the object as it is, or nothing."""
        kind, namespace, name = key
        stream = aiter(
            client.watch(_resource(kind), namespace=namespace, fields={"metadata.name": name}, server_timeout=WATCH_S)
        )
        while True:
            try:
                async with asyncio.timeout(SILENCE_S):
                    what, item = await anext(stream)
            except (TimeoutError, StopAsyncIteration):
                return
            backoff.worked()
            if what in ("ADDED", "MODIFIED"):
                self._take(key, item)

    def _take(self, key: Key, document: Any) -> None:
        with suppress(TypeError):  # a proxy may send anything
            found = parse(key[0], document)
            if found is not None:
                for event in changes(self.known.get(key), found, time.time_ns() // 1000):
                    self._on_event(event)
                self.known[key] = found


def _resource(kind: str) -> Any:
    from lightkube.generic_resource import create_namespaced_resource

    return create_namespaced_resource(GROUP, VERSION, kind, PLURALS[kind])
