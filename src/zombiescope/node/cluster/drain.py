"""Emptying a node by the Eviction API: which pods go, which stay and why, and which nobody may take without being told.

As kubectl drain has it: pods of a DaemonSet and of files on the node stay; a pod without a controller would not come
back, and one with an emptyDir loses it, so both ask for consent; what the cluster autoscaler was told not to evict is
not evicted. PodDisruptionBudgets are the server's to judge: 429 is "not now", and is waited for until the time is up.

Clusters before 1.22 know evictions of policy/v1beta1 only, newer ones may know only policy/v1: the newer is tried
first, and whichever the server took is remembered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zombiescope.node.cluster import access
from zombiescope.node.cluster.access import ClusterError
from zombiescope.node.cluster.pod import Pod, parse

if TYPE_CHECKING:
    from lightkube import Client

VERSIONS = ("policy/v1", "policy/v1beta1")
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
TIMEOUT_S = 900.0
LOOK_S = 2.0
BLOCKED_S = 5.0
"""How long to wait after a 429 that does not say itself."""
PAGE = 100
_BAD, _MISSING, _BUSY = 400, 404, 429


@dataclass(frozen=True, slots=True)
class Consent:
    """What may be lost. Each has to be said."""

    local_data: bool = False
    unmanaged: bool = False
    unsafe: bool = False
    """Pods that the autoscaler was told not to evict."""


@dataclass(frozen=True, slots=True)
class DrainPlan:
    evicted: tuple[Pod, ...]
    staying: tuple[tuple[Pod, str], ...]
    refused: tuple[tuple[Pod, str], ...]
    """Without consent nothing is evicted."""

    def lines(self) -> Iterator[str]:
        for pod in self.evicted:
            yield f"evict {pod.path}" + (f" ({pod.owner_path})" if pod.owner else "")
        for pod, why in self.staying:
            yield f"keep {pod.path}: {why}"
        for pod, why in self.refused:
            yield f"refused {pod.path}: {why}"


def plan(client: Client, node: str, consent: Consent | None = None) -> DrainPlan:
    """Raises ClusterError."""
    given = consent or Consent()
    evicted: list[Pod] = []
    staying: list[tuple[Pod, str]] = []
    refused: list[tuple[Pod, str]] = []
    for pod, is_unsafe in _pods(client, node):
        if (why := _stays(pod)) is not None:
            staying.append((pod, why))
        elif (why := _refusal(pod, is_unsafe, given)) is not None:
            refused.append((pod, why))
        else:
            evicted.append(pod)
    return DrainPlan(tuple(evicted), tuple(staying), tuple(refused))


def _pods(client: Client, node: str) -> Iterator[tuple[Pod, bool]]:
    from lightkube.resources.core_v1 import Pod as PodResource

    try:
        for item in client.list(PodResource, namespace="*", chunk_size=PAGE, fields={"spec.nodeName": node}):
            document = item.to_dict()
            pod = parse(document)
            if pod is not None:
                marks = document.get("metadata", {}).get("annotations") or {}
                yield pod, marks.get(SAFE_TO_EVICT) == "false"
    except access.trouble() as error:
        raise ClusterError(f"the pods of {node} cannot be listed: {access.brief(error)}") from error


def _stays(pod: Pod) -> str | None:
    if pod.is_mirror:
        return "made from a file on the node"
    if pod.owner is not None and pod.owner.kind == "DaemonSet":
        return f"of DaemonSet {pod.owner.name}, which would bring it back"
    return None


def _refusal(pod: Pod, is_unsafe: bool, consent: Consent) -> str | None:
    if pod.is_over:
        return None
    if is_unsafe and not consent.unsafe:
        return f"{SAFE_TO_EVICT} is false"
    if pod.owner is None and not consent.unmanaged:
        return "nothing would start it again elsewhere"
    if pod.has_local_data and not consent.local_data:
        return "its emptyDir would be lost"
    return None


class Drain:
    """One node, emptied. `told` gets a line for whatever a person waits for."""

    def __init__(
        self,
        client: Client,
        node: str,
        *,
        consent: Consent | None = None,
        timeout_s: float = TIMEOUT_S,
        told: Callable[[str], object] = str,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._node, self._consent = client, node, consent
        self._timeout_s, self._told, self._sleep, self._clock = timeout_s, told, sleep, clock
        self._version = VERSIONS[0]

    def run(self) -> DrainPlan:
        """What was evicted and what stayed. Raises ClusterError where somebody must decide, or the time is up; the
        node stays cordoned then."""
        wanted = plan(self._client, self._node, self._consent)
        if wanted.refused:
            pod, why = wanted.refused[0]
            raise ClusterError(
                f"{len(wanted.refused)} pods of {self._node} are not evicted without consent: {pod.path}: {why}",
                "move them by hand, or say that they may go",
            )
        end = self._clock() + self._timeout_s
        waiting, blocked = list(wanted.evicted), dict.fromkeys((pod.uid for pod in wanted.evicted), "not asked yet")
        while waiting:
            for pod in waiting:
                self._ask(pod, blocked)
            waiting = [pod for pod in waiting if not self._is_gone(pod)]
            if waiting and self._clock() >= end:
                raise self._too_late(waiting, blocked)
            if waiting:
                self._sleep(BLOCKED_S if blocked.keys() & {pod.uid for pod in waiting} else LOOK_S)
        return wanted

    def _ask(self, pod: Pod, blocked: dict[str, str]) -> None:
        """`blocked`: those that the server did not take yet, and why."""
        if pod.uid not in blocked:
            return
        why = self._try(pod)
        if not why:
            del blocked[pod.uid]
        elif blocked[pod.uid] != why:
            self._told(f"{pod.path} cannot be evicted now: {why}")
            blocked[pod.uid] = why

    def _too_late(self, waiting: list[Pod], blocked: dict[str, str]) -> ClusterError:
        pod = waiting[0]
        why = blocked.get(pod.uid, "it was evicted and does not end")
        return ClusterError(
            f"{len(waiting)} pods are still on {self._node} after {self._timeout_s:.0f} s: {pod.path}: {why}",
            "look at its PodDisruptionBudget (kubectl get pdb --all-namespaces), or uncordon the node",
        )

    def _try(self, pod: Pod) -> str:
        """Empty: accepted."""
        try:
            self._post(pod)
        except access.trouble() as error:
            code = access.status_code(error)
            if code == _MISSING:
                return ""
            if code == _BUSY or code is None or code >= 500:
                return access.brief(error)
            raise ClusterError(f"{pod.path} cannot be evicted: {access.brief(error)}") from error
        return ""

    def _post(self, pod: Pod) -> None:
        try:
            self._create(pod, self._version)
        except access.trouble() as error:
            # An old server: no kind "Eviction" is registered for version "policy/v1".
            if access.status_code(error) != _BAD or self._version == VERSIONS[1]:
                raise
            self._create(pod, VERSIONS[1])
            self._version = VERSIONS[1]

    def _create(self, pod: Pod, version: str) -> None:
        from lightkube.resources.core_v1 import PodEviction

        # The uid: a pod of the same name that came meanwhile is not the one that was looked at.
        options: dict[str, Any] = {"preconditions": {"uid": pod.uid}}
        about = {"name": pod.name, "namespace": pod.namespace}
        eviction = access.resource(PodEviction, {"kind": "Eviction", "metadata": about, "deleteOptions": options})
        eviction.apiVersion = version  # what a document says of it is ignored
        self._client.create(eviction, pod.name, namespace=pod.namespace)

    def _is_gone(self, pod: Pod) -> bool:
        from lightkube.resources.core_v1 import Pod as PodResource

        try:
            found = parse(self._client.get(PodResource, pod.name, namespace=pod.namespace).to_dict())
        except access.trouble() as error:
            return access.status_code(error) == _MISSING
        return found is None or found.uid != pod.uid
