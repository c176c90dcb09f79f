"""The section `kubernetes` and its service: pods of this node for the recorder, incidents of this node for the cluster.

One thread with an event loop: a watch of the pods, one of each RayJob and RayCluster that has a pod here, a look at
incidents.json, and a feed to the recorder. The API server
may be away for as long as it likes: the recorder notices nothing, names stay as they were last known, and incidents
that are still open are told when it is back.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from zombiescope.agent import node_parts
from zombiescope.agent.config.setting import setting
from zombiescope.agent.part_watch import PartChange, PartWatch
from zombiescope.agent.service import Context, Service
from zombiescope.base.feed import Feed
from zombiescope.node.cluster import access
from zombiescope.node.cluster.access import Access
from zombiescope.node.cluster.backoff import Backoff, Outage
from zombiescope.node.cluster.changes import PodEvent
from zombiescope.node.cluster.incident_news import News, bounded, died_of, news
from zombiescope.node.cluster.node_conditions import NodeConditions
from zombiescope.node.cluster.node_events import NodeEvents
from zombiescope.node.cluster.node_labels import node_labels
from zombiescope.node.cluster.pod import Pod
from zombiescope.node.cluster.pod_watch import PodWatch
from zombiescope.node.cluster.ray_watch import RayWatch
from zombiescope.store import incident_file, locate
from zombiescope.store.health import LIVE_DIAGNOSIS, RECORDER

if TYPE_CHECKING:
    from lightkube import AsyncClient

FEED_S = 1.0
AGAIN_S = 60.0
"""All pods are told again so often: a recorder that was started anew knows none."""
LOOK_S = 5.0
LABELS_S = 3600.0
STOP_LOOK_S = 1.0
LAST_WORD_S = 3.0
MOST_PART_NEWS = 100
PART_FAILED, PART_RECOVERED = "ZombiescopePartFailed", "ZombiescopePartRecovered"
SOURCE = "kubernetes"
AWAY, BACK = "kubernetes_away", "kubernetes_back"
BLIND = "no recorder runs on this node"
OVER = "the agent of this node was stopped"


@dataclass(frozen=True, slots=True)
class KubernetesSection:
    """Names of pods and owners from the API server; incidents as Events and node conditions."""

    enabled: bool = setting(False, "Use the Kubernetes API server.")
    kubeconfig: str | None = setting(
        None, "Credentials. Default: the pod's service account, else $KUBECONFIG, else ~/.kube/config."
    )
    node: str | None = setting(
        None, "This node's name in Kubernetes. Default: $NODE_NAME, else the host's name.", pattern=r"[a-z0-9.-]{1,253}"
    )
    events: bool = setting(
        True,
        "An Event on the Node for every incident and every part of zombiescope that fails, and on each RayJob that "
        "died of an incident.",
    )
    conditions: bool = setting(
        False,
        "Node conditions CoreStarvation, CgroupLeak, UnitCrashLoop and HardwareFault. Some tools replace a node for "
        "them.",
    )
    ray: bool = setting(True, "The status of RayJobs and RayClusters of KubeRay that have pods on this node.")


def services(section: KubernetesSection) -> Sequence[Service]:
    return (KubernetesService(section),) if section.enabled else ()


class KubernetesService:
    name = "kubernetes"

    def __init__(self, section: KubernetesSection, feed: Feed | None = None) -> None:
        self._section = section
        self._feed = feed or Feed()

    def run(self, context: Context, stop: threading.Event) -> None:
        access.need_extra()
        asyncio.run(_Session(self._section, self._feed, context).run(stop))


class _Session:
    """One run of the service."""

    def __init__(self, section: KubernetesSection, feed: Feed, context: Context) -> None:
        self._section, self._feed, self._context = section, feed, context
        self._labels: dict[str, str] = {}
        self._notes: list[str] = []
        """What is not possible and no fault: said in /readyz."""
        self._access = Access(section.kubeconfig, section.node)
        node = self._access.node_name()
        self._watch = PodWatch(node, on_pod=self._pod, on_gone=lambda _: None, on_event=self._event, say=self._say)
        self._events = NodeEvents(node) if section.events else None
        self._part_events = NodeEvents(node) if section.events else None
        self._job_events = NodeEvents(node) if section.events and section.ray else None
        self._down = PartWatch(partial(node_parts.news, context.node_dir, context.health))
        self._part_news: deque[News] = deque(maxlen=MOST_PART_NEWS)
        """Not yet told: the API server may be away."""
        self._conditions = NodeConditions(node) if section.conditions else None
        self._ray = RayWatch(self._access.async_client, self._event, self._notes.append) if section.ray else None
        self._telling = Outage(self._say)
        self._backoff = Backoff()

    async def run(self, stop: threading.Event) -> None:
        parts = [self._watch.run(self._access.async_client), self._feeding(), self._tell_on(), self._label_on()]
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            while not stop.is_set() and not any(task.done() for task in tasks):
                self._context.beat(2 * STOP_LOOK_S)
                await asyncio.sleep(STOP_LOOK_S)
            for task in tasks:
                if task.done():
                    task.result()  # raises what ended it: we are started again
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._ray is not None:
                await self._ray.close()
            if stop.is_set():
                await self._last_word()

    def _say(self, line: str) -> None:
        away = self._watch.outage.lasts_s is not None or self._telling.lasts_s is not None
        self._context.say("degraded" if away else "ok", line)
        # On the axis too: without it, no eviction in that hour would look like none.
        about = {"at_us": time.time_ns() // 1000, "kind": AWAY if away else BACK, "source": SOURCE, "severity": "info"}
        self._feed.event({**about, "text": line})

    # --- to the recorder ----------------------------------------------------------------------------------------------

    def _pod(self, pod: Pod) -> None:
        self._feed.pod(_fed(pod))

    def _event(self, event: PodEvent) -> None:
        self._feed.event(
            {
                "at_us": event.at_us, "kind": event.kind, "source": SOURCE, "severity": event.severity,
                "text": event.text, "fields": event.fields,
            }
        )  # fmt: skip

    async def _feeding(self) -> None:
        loop = asyncio.get_running_loop()
        next_s = loop.time() + AGAIN_S
        while True:
            if loop.time() >= next_s:
                next_s = loop.time() + AGAIN_S
                for pod in self._watch.pods.values():
                    self._pod(pod)
                self._feed.labels(self._labels)
            if self._watch.synced_at is not None and self._watch.outage.lasts_s is None:
                self._healthy()
            if self._ray is not None:
                self._ray.follow(self._watch.pods.values())
            self._feed.flush()
            await asyncio.sleep(FEED_S)

    def _healthy(self) -> None:
        if self._telling.lasts_s is None:
            self._context.worked()
            more = [f"{self._watch.refused} more do not fit"] if self._watch.refused else []
            self._context.say("ok", "; ".join([f"follows the pods of {self._watch.node}", *more, *self._notes]))

    async def _label_on(self) -> None:
        """Zone, instance type, image and pool of the node. They hardly change; without them everything else works."""
        backoff = Backoff()
        while True:
            client, wait_s = None, LABELS_S
            try:
                client = self._access.async_client()
                self._labels = await node_labels(client, self._watch.node)
                self._feed.labels(self._labels)
                backoff.worked()
            except access.any_trouble() as error:
                wait_s = backoff.delay_s(error)
            finally:
                if client is not None:
                    await client.close()
            await asyncio.sleep(wait_s)

    # --- to the cluster -----------------------------------------------------------------------------------------------

    async def _tell_on(self) -> None:
        if self._events is None and self._conditions is None:
            await asyncio.Event().wait()
        while True:
            client, wait_s = None, LOOK_S
            try:
                client = self._access.async_client()
                while True:
                    await self._tell(client)
                    self._backoff.worked()
                    self._telling.worked()
                    await asyncio.sleep(LOOK_S)
            except access.any_trouble() as error:
                self._telling.failed(error, f"telling of incidents on {self._watch.node}")
                wait_s = self._backoff.delay_s(error)
            finally:
                if client is not None:
                    await client.close()
            await asyncio.sleep(wait_s)

    async def _tell(self, client: AsyncClient) -> None:
        entries = incident_file.read(self._context.node_dir)
        known = [one for one in map(news, entries) if one is not None]
        for one in known if self._events is not None else ():
            assert self._events is not None
            await self._events.tell(client, one)
        if self._part_events is not None:
            await self._tell_of_parts(client, self._part_events)
        if self._job_events is not None and self._ray is not None and (jobs := self._ray.jobs()):
            for one in (one for entry in entries for one in died_of(entry, jobs)):
                await self._job_events.tell(client, one)
        if self._conditions is not None:
            await self._conditions.settle(client, known, self._blind())

    def _blind(self) -> str | None:
        """Why nobody knows of incidents: no condition is False because nobody looks."""
        if not locate.is_locked(self._context.node_dir):
            return BLIND
        parts = node_parts.read(self._context.node_dir, self._context.health)
        dead = (part for part in parts if part.name in (RECORDER, LIVE_DIAGNOSIS) and part.state in node_parts.BAD)
        return next(map(node_parts.brief, dead), None)

    async def _tell_of_parts(self, client: AsyncClient, events: NodeEvents) -> None:
        self._part_news.extend(part_news(change) for change in self._down.poll())
        while self._part_news:
            await events.tell(client, self._part_news[0])
            self._part_news.popleft()

    async def _last_word(self) -> None:
        """A condition that nobody looks after any more must not say True or False."""
        if self._conditions is None:
            return
        with suppress(TimeoutError, *access.any_trouble()):
            async with asyncio.timeout(LAST_WORD_S):
                client = self._access.async_client()
                try:
                    await self._conditions.settle(client, (), OVER)
                finally:
                    await client.close()


def part_news(change: PartChange) -> News:
    """What a part that fails, or works again, is to the cluster."""
    failed = change.kind == "failed"
    said = node_parts.brief(change.part) if failed else f"{change.part.name} works again"
    return News(
        change.identity[:80], PART_FAILED, bounded(f"zombiescope: {said}"), failed, failed, frozenset(),
        change.part.since, subject=change.part.name[:80], over_reason=PART_RECOVERED,
    )  # fmt: skip


def _fed(pod: Pod) -> dict[str, Any]:
    containers = [
        {"id": one.id, "name": one.name, "image": one.image, "restarts": one.restarts}
        for one in pod.containers
        if one.id is not None
    ]
    about = {"uid": pod.cgroup_uid, "namespace": pod.namespace, "name": pod.name, "owner": pod.owner_path}
    return {**about, "containers": containers}
