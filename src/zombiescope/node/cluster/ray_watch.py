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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zombiescope.base.text import printable
from zombiescope.node.cluster import access
from zombiescope.node.cluster.backoff import Backoff
from zombiescope.node.cluster.changes import PodEvent
from zombiescope.node.cluster.incident_news import Subject
from zombiescope.node.cluster.pod import MAX_NAME, MAX_TEXT, Pod, time_us

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


# --- objects of KubeRay -----------------------------------------------------------------------------------------------
# A RayJob or RayCluster of KubeRay (ray.io/v1): its status, and what happened between two looks at it.
#
#     RayJob      .status.jobStatus (RUNNING, SUCCEEDED, FAILED, STOPPED), .jobDeploymentStatus (Failed), .jobId,
# .reason,                 .message: as the operator reads them off Ray's dashboard, or decides them (a deadline that
# passed)     RayCluster  .status.state (ready, failed, suspended), .availableWorkerReplicas of .desiredWorkerReplicas
#
# Everything in it was written by others. Texts are cut; what is not of the kind that KubeRay promises is None. Events
# stand at the time at which we heard of them: the operator's clock is another machine's.

RAY_JOB, RAY_CLUSTER = "RayJob", "RayCluster"
PLURALS = {RAY_JOB: "rayjobs", RAY_CLUSTER: "rayclusters"}
STARTED, FINISHED, FAILED, STOPPED = "rayjob_started", "rayjob_finished", "rayjob_failed", "rayjob_stopped"
UNHEALTHY, HEALTHY = "raycluster_unhealthy", "raycluster_healthy"
_JOB = {
    "RUNNING": (STARTED, "runs"), "SUCCEEDED": (FINISHED, "succeeded"), "FAILED": (FAILED, "failed"),
    "STOPPED": (STOPPED, "was stopped"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RayObject:
    kind: str
    namespace: str
    name: str
    state: str | None
    """Of a job RUNNING, ..., of a cluster ready, ...; None: nothing yet."""
    reason: str | None
    message: str | None
    job_id: str | None = None
    """Under which Ray knows the job: its submission id."""
    workers: tuple[int, int] | None = None
    """Available and desired."""
    ran_s: float | None = None
    """Of a job that has ended; both times are the operator's."""
    uid: str | None = None

    @property
    def path(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def is_whole(self) -> bool:
        """Of a cluster."""
        lacks = self.workers is not None and self.workers[0] < self.workers[1]
        return self.state not in ("failed", "unhealthy") and not lacks


def parse(kind: str, document: Mapping[str, Any]) -> RayObject | None:
    """None without a name."""
    about, status = (_map(document.get(part)) for part in ("metadata", "status"))
    name = _text(about.get("name"), MAX_NAME)
    if name is None:
        return None
    namespace = _text(about.get("namespace"), MAX_NAME) or "default"
    state = _job_state(status) if kind == RAY_JOB else _text(status.get("state"))
    return RayObject(
        kind, namespace, name, state, _text(status.get("reason")), _text(status.get("message")),
        _text(status.get("jobId"), MAX_NAME), _workers(status) if kind == RAY_CLUSTER else None, _ran_s(status),
        _text(about.get("uid"), MAX_NAME),
    )  # fmt: skip


def _job_state(status: Mapping[str, Any]) -> str | None:
    """A job that was never submitted, or whose deadline passed, has failed without a status of Ray's."""
    if status.get("jobDeploymentStatus") == "Failed" and status.get("jobStatus") not in ("SUCCEEDED", "STOPPED"):
        return "FAILED"
    return _text(status.get("jobStatus"))


def _workers(status: Mapping[str, Any]) -> tuple[int, int] | None:
    available, desired = status.get("availableWorkerReplicas", 0), status.get("desiredWorkerReplicas")
    return (available, desired) if isinstance(available, int) and isinstance(desired, int) else None


def _ran_s(status: Mapping[str, Any]) -> float | None:
    start_us, end_us = (time_us(status.get(key)) for key in ("startTime", "endTime"))
    return (end_us - start_us) / 1e6 if start_us is not None and end_us is not None and end_us >= start_us else None


def changes(old: RayObject | None, new: RayObject, now_us: int) -> Iterator[PodEvent]:
    """`old` is None at the first look: what is over by then was over before."""
    found = _job_change(old, new) if new.kind == RAY_JOB else _cluster_change(old, new)
    if found is not None:
        kind, severity, text = found
        yield PodEvent(now_us, kind, severity, text, _fields(new))


def _job_change(old: RayObject | None, new: RayObject) -> tuple[str, str, str] | None:
    kind, verb = _JOB.get(new.state or "", (None, ""))
    if kind is None or (old is None and kind != STARTED) or (old is not None and old.state == new.state):
        return None
    # What the job printed may stand in the message: in a field, where redaction finds it.
    why = f" ({printable(new.reason)})" if new.reason and kind == FAILED else ""
    return kind, "warning" if kind == FAILED else "info", f"{new.path} {verb}{why}"


def _cluster_change(old: RayObject | None, new: RayObject) -> tuple[str, str, str] | None:
    """Fewer workers than before is news; a cluster that is only being built has never had them."""
    if old is None or old.is_whole == new.is_whole:
        return None
    if new.is_whole:
        return HEALTHY, "info", f"{new.path} is whole again"
    if new.state in ("failed", "unhealthy") or new.workers is None:
        return UNHEALTHY, "warning", f"{new.path} is {new.state}"
    return UNHEALTHY, "warning", f"{new.path} has {new.workers[0]} of {new.workers[1]} workers"


def _fields(one: RayObject) -> dict[str, Any]:
    workers = {} if one.workers is None else {"workers": one.workers[0], "workers_desired": one.workers[1]}
    found = {
        "owner": f"{one.kind}/{one.name}", "namespace": one.namespace, "submission_id": one.job_id,
        "reason": one.reason, "said": one.message, "ran_s": one.ran_s, **workers,
    }  # fmt: skip
    return {key: value for key, value in found.items() if value is not None}


def _text(value: object, most: int = MAX_TEXT) -> str | None:
    return value[:most] if isinstance(value, str) and value else None


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
