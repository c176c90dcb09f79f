"""A pod of this node, with as much of it as anybody here asks for: names, owner, containers, how often they restarted.

Everything in it was written by whoever made the pod. Texts are cut; what is not of the kind that the API promises is
None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

MAX_NAME = 253
"""The longest name that Kubernetes takes."""
MAX_TEXT = 300
MAX_CONTAINERS = 64
MIRROR = "kubernetes.io/config.mirror"
_TEMPLATE_HASH = "pod-template-hash"
_RAY_CLUSTER = "ray.io/cluster"
_RAY_KIND, _RAY_NAME = "ray.io/originated-from-crd", "ray.io/originated-from-cr-name"
_ABOVE = (("jobset.sigs.k8s.io/jobset-name", "JobSet"), ("leaderworkerset.sigs.k8s.io/name", "LeaderWorkerSet"))
"""Labels of pods whose controller is a Job or a StatefulSet that another object made, one of many of one training."""
_ALONE = (("kueue.x-k8s.io/pod-group-name", "PodGroup"), ("training.kubeflow.org/job-name", "TrainingJob"),
          ("volcano.sh/job-name", "Job"))  # fmt: skip
"""Labels of pods that are of one training and have no controller."""
_EVICTING = ("EvictionByEvictionAPI", "PreemptionByScheduler", "PreemptionByKubeScheduler", "DeletionByTaintManager",
             "DeletionByPodGC", "TerminationByKubelet")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Termination:
    """How a container ended."""

    code: int | None
    reason: str | None
    at_us: int | None


@dataclass(frozen=True, slots=True)
class PodContainer:
    name: str
    image: str | None
    id: str | None
    """Without the runtime's prefix: as it stands in the path of its cgroup."""
    restarts: int
    waiting: str | None
    """Why it does not run: CrashLoopBackOff, ImagePullBackOff."""
    last: Termination | None


@dataclass(frozen=True, slots=True)
class Owner:
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Pod:
    uid: str
    namespace: str
    name: str
    phase: str | None
    owner: Owner | None
    containers: tuple[PodContainer, ...]
    reason: str | None
    """Evicted, NodeLost, ...: why kubelet ended it."""
    message: str | None
    disruption: str | None
    """Why the control plane ends it: EvictionByEvictionAPI, PreemptionByScheduler, ... (from Kubernetes 1.26 on)."""
    is_deleted: bool
    is_mirror: bool
    """Of a file on the node: the API server cannot end it."""
    has_local_data: bool
    """An emptyDir: gone when it is evicted."""
    config_hash: str | None = None
    """A static pod is known to its cgroups by this, not by its uid."""
    ray_cluster: str | None = None
    """The RayCluster that it is a part of."""

    @property
    def path(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def cgroup_uid(self) -> str:
        """The uid as it stands in cgroup paths."""
        return self.config_hash or self.uid

    @property
    def restarts(self) -> int:
        return sum(one.restarts for one in self.containers)

    @property
    def is_over(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def owner_path(self) -> str | None:
        return None if self.owner is None else f"{self.owner.kind}/{self.owner.name}"


def parse(document: Mapping[str, Any]) -> Pod | None:
    """Of a Pod as the API sends it; None without a uid or a name."""
    about, spec, status = (_map(document.get(part)) for part in ("metadata", "spec", "status"))
    uid, name = _text(about.get("uid"), MAX_NAME), _text(about.get("name"), MAX_NAME)
    if uid is None or name is None:
        return None
    marks = _map(about.get("annotations"))
    return Pod(
        uid,
        _text(about.get("namespace"), MAX_NAME) or "default",
        name,
        _text(status.get("phase")),
        _owner(about),
        _containers(status),
        _text(status.get("reason")),
        _text(status.get("message")),
        _disruption(status),
        about.get("deletionTimestamp") is not None,
        MIRROR in marks,
        any("emptyDir" in _map(volume) for volume in _list(spec.get("volumes"))),
        _text(marks.get("kubernetes.io/config.hash"), MAX_NAME) if MIRROR in marks else None,
        _text(_map(about.get("labels")).get(_RAY_CLUSTER), MAX_NAME),
    )


def _owner(about: Mapping[str, Any]) -> Owner | None:
    """Who made it, as people call that: the Deployment of a ReplicaSet, the RayJob of a RayCluster, the JobSet of a
    Job; of a pod without a controller the group that it is in. Taken from the pod itself: no right to read Deployments
    is needed, and nothing is asked."""
    labels = _map(about.get("labels"))
    made_by, name = _text(labels.get(_RAY_KIND)), _text(labels.get(_RAY_NAME), MAX_NAME)
    if made_by in ("RayJob", "RayService") and name:
        return Owner(made_by, name)
    return _named(labels, _ABOVE) or _controller(about, labels) or _named(labels, _ALONE)


def _named(labels: Mapping[str, Any], known: tuple[tuple[str, str], ...]) -> Owner | None:
    found = ((kind, _text(labels.get(label), MAX_NAME)) for label, kind in known)
    return next((Owner(kind, name) for kind, name in found if name is not None), None)


def _controller(about: Mapping[str, Any], labels: Mapping[str, Any]) -> Owner | None:
    for reference in map(_map, _list(about.get("ownerReferences"))):
        kind, name = _text(reference.get("kind")), _text(reference.get("name"), MAX_NAME)
        if reference.get("controller") is not True or kind is None or name is None:
            continue
        suffix = f"-{labels.get(_TEMPLATE_HASH)}"
        if kind == "ReplicaSet" and name.endswith(suffix) and name != suffix:
            return Owner("Deployment", name.removesuffix(suffix))
        return Owner(kind, name)
    return None


def _containers(status: Mapping[str, Any]) -> tuple[PodContainer, ...]:
    listed = [*_list(status.get("initContainerStatuses")), *_list(status.get("containerStatuses"))]
    found = (_container(_map(one)) for one in listed[:MAX_CONTAINERS])
    return tuple(one for one in found if one is not None)


def _container(status: Mapping[str, Any]) -> PodContainer | None:
    name = _text(status.get("name"), MAX_NAME)
    if name is None:
        return None
    state, last = _map(status.get("state")), _map(status.get("lastState"))
    identity = _text(status.get("containerID"), MAX_TEXT) or ""
    restarts = status.get("restartCount")
    return PodContainer(
        name,
        _text(status.get("image")),
        identity.rpartition("//")[2] or None,
        restarts if isinstance(restarts, int) and restarts >= 0 else 0,
        _text(_map(state.get("waiting")).get("reason")),
        _termination(_map(state.get("terminated"))) or _termination(_map(last.get("terminated"))),
    )


def _termination(said: Mapping[str, Any]) -> Termination | None:
    if not said:
        return None
    code = said.get("exitCode")
    return Termination(
        code if isinstance(code, int) else None, _text(said.get("reason")), time_us(said.get("finishedAt"))
    )


def _disruption(status: Mapping[str, Any]) -> str | None:
    for condition in map(_map, _list(status.get("conditions"))):
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            reason = _text(condition.get("reason"))
            return reason if reason in _EVICTING else "Disruption"
    return None


def time_us(text: object) -> int | None:
    """Of a time as Kubernetes writes it: 2026-01-02T03:04:05Z."""
    try:
        return round(datetime.fromisoformat(str(text)).timestamp() * 1e6)
    except (ValueError, OverflowError):
        return None


def _text(value: object, most: int = MAX_TEXT) -> str | None:
    return value[:most] if isinstance(value, str) and value else None


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
