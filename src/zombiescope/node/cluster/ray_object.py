"""A RayJob or RayCluster of KubeRay (ray.io/v1): its status, and what happened between two looks at it.

    RayJob      .status.jobStatus (RUNNING, SUCCEEDED, FAILED, STOPPED), .jobDeploymentStatus (Failed), .jobId, .reason,
                .message: as the operator reads them off Ray's dashboard, or decides them (a deadline that passed)
    RayCluster  .status.state (ready, failed, suspended), .availableWorkerReplicas of .desiredWorkerReplicas

Everything in it was written by others. Texts are cut; what is not of the kind that KubeRay promises is None. Events
stand at the time at which we heard of them: the operator's clock is another machine's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from zombiescope.base.text import printable
from zombiescope.node.cluster.changes import PodEvent
from zombiescope.node.cluster.pod import MAX_NAME, MAX_TEXT, time_us

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
