"""Pods as the API sends them: owners as people call them, hostile values, and what changed between two looks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from zombiescope.node.cluster.changes import changes
from zombiescope.node.cluster.pod import Owner, Pod, parse

NOW = 1_800_000_000_000_000


def document(**parts: Any) -> dict[str, Any]:
    about = {"uid": "u1", "name": "web-7d4b9c6f5-x2kqz", "namespace": "ml", **parts.pop("metadata", {})}
    return {"metadata": about, "spec": parts.pop("spec", {}), "status": parts.pop("status", {"phase": "Running"})}


def owned(kind: str, name: str, **labels: str) -> Owner | None:
    reference = {"kind": kind, "name": name, "controller": True}
    pod = parse(document(metadata={"ownerReferences": [reference], "labels": labels}))
    assert pod is not None
    return pod.owner


@pytest.mark.parametrize(
    ("kind", "name", "labels", "owner"),
    [
        ("ReplicaSet", "web-7d4b9c6f5", {"pod-template-hash": "7d4b9c6f5"}, Owner("Deployment", "web")),
        ("ReplicaSet", "by-hand", {}, Owner("ReplicaSet", "by-hand")),
        ("ReplicaSet", "by-hand", {"pod-template-hash": "other"}, Owner("ReplicaSet", "by-hand")),
        ("StatefulSet", "db", {}, Owner("StatefulSet", "db")),
        ("DaemonSet", "exporter", {}, Owner("DaemonSet", "exporter")),
        ("Job", "batch", {}, Owner("Job", "batch")),
        ("RayCluster", "train-raycluster-x", {}, Owner("RayCluster", "train-raycluster-x")),
    ],
)
def test_the_owner_is_what_people_call_it(kind: str, name: str, labels: dict[str, str], owner: Owner) -> None:
    assert owned(kind, name, **labels) == owner


def test_a_ray_cluster_of_a_ray_job_is_the_jobs() -> None:
    labels = {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "train"}
    assert owned("RayCluster", "train-raycluster-x", **labels) == Owner("RayJob", "train")


@pytest.mark.parametrize(
    ("label", "owner"),
    [
        ("jobset.sigs.k8s.io/jobset-name", Owner("JobSet", "llama")),
        ("leaderworkerset.sigs.k8s.io/name", Owner("LeaderWorkerSet", "llama")),
        ("kueue.x-k8s.io/pod-group-name", Owner("Job", "llama-workers-0")),
        ("kueue.x-k8s.io/queue-name", Owner("Job", "llama-workers-0")),
    ],
)
def test_the_jobs_of_one_training_have_one_owner(label: str, owner: Owner) -> None:
    assert owned("Job", "llama-workers-0", **{label: "llama"}) == owner


@pytest.mark.parametrize(
    ("label", "owner"),
    [
        ("kueue.x-k8s.io/pod-group-name", Owner("PodGroup", "llama")),
        ("training.kubeflow.org/job-name", Owner("TrainingJob", "llama")),
        ("volcano.sh/job-name", Owner("Job", "llama")),
        ("team", None),
    ],
)
def test_pods_without_a_controller_are_known_by_their_group(label: str, owner: Owner | None) -> None:
    pod = parse(document(metadata={"labels": {label: "llama"}}))
    assert pod is not None
    assert pod.owner == owner


@pytest.mark.parametrize("kind", ["PyTorchJob", "MPIJob", "TFJob", "Workflow"])
def test_operators_that_make_pods_are_their_owners(kind: str) -> None:
    assert owned(kind, "llama", **{"training.kubeflow.org/job-name": "llama"}) == Owner(kind, "llama")


def test_whoever_does_not_control_it_is_no_owner() -> None:
    pod = parse(document(metadata={"ownerReferences": [{"kind": "Node", "name": "n", "controller": False}]}))
    assert pod is not None
    assert pod.owner is None


@pytest.mark.parametrize("hostile", [None, 7, [], {}, "x", [[1]], {"a": {"b": 1}}, -1, True, [{"name": 7}], [None]])
def test_nothing_that_a_server_sends_breaks_it(hostile: Any) -> None:
    for part in ("metadata", "spec", "status"):
        parse({**document(), part: hostile})
    for key in ("labels", "annotations", "ownerReferences", "uid", "deletionTimestamp"):
        parse(document(metadata={key: hostile}))
    for key in ("containerStatuses", "conditions", "phase", "initContainerStatuses"):
        parse(document(status={key: hostile}))
    status = [{"name": "c", "restartCount": hostile, "state": hostile, "lastState": {"terminated": hostile}}]
    parse(document(status={"containerStatuses": status}))


def test_texts_are_cut() -> None:
    pod = parse(document(metadata={"name": "n" * 9999}, status={"message": "m" * 9999}))
    assert pod is not None
    assert (len(pod.name), len(pod.message or "")) == (253, 300)


def test_a_static_pod_is_known_by_its_hash() -> None:
    marks = {"kubernetes.io/config.mirror": "abc", "kubernetes.io/config.hash": "abc"}
    pod = parse(document(metadata={"annotations": marks}))
    assert pod is not None
    assert (pod.is_mirror, pod.cgroup_uid) == (True, "abc")


# --- what happened ----------------------------------------------------------------------------------------------------


def pod(restarts: int = 0, reason: str = "Error", finished: str = "2027-01-15T07:59:50Z", **status: Any) -> Pod:
    ended = {"exitCode": 1, "reason": reason, "finishedAt": finished}
    one = {"name": "main", "image": "i:1", "restartCount": restarts}
    if restarts:
        one["lastState"] = {"terminated": ended}
    found = parse(document(status={"phase": "Running", "containerStatuses": [one], **status}))
    assert found is not None
    return found


def kinds(old: Pod | None, new: Pod) -> list[str]:
    return [event.kind for event in changes(old, new, NOW)]


def test_restarts_while_nobody_looked_are_one_event_that_says_how_many() -> None:
    (event,) = changes(pod(2), pod(9), NOW)
    assert event.fields["times"] == 7
    assert "was restarted 7 times (exit 1)" in event.text
    assert event.at_us == 1_799_999_990_000_000, "when it ended, by the clock of its node"


def test_an_oom_kill_is_said_also_when_the_container_is_not_restarted() -> None:
    before, after = pod(1), pod(1, "OOMKilled", "2027-01-15T07:59:59Z")
    assert kinds(before, after) == ["pod_oom_killed"]
    assert kinds(after, after) == []


def test_what_was_over_long_before_we_came_is_no_event() -> None:
    assert kinds(None, pod(5, finished="2027-01-15T07:00:00Z")) == []
    assert kinds(None, pod(5)) == ["pod_restarted"], "two minutes back it may be why we are here"


def test_a_time_in_the_future_is_now() -> None:
    (event,) = changes(pod(0), pod(1, finished="2031-01-01T00:00:00Z"), NOW)
    assert event.at_us == NOW


def test_evictions_are_said_once() -> None:
    evicted = pod(reason="Evicted")
    evicted = replace(evicted, reason="Evicted", phase="Failed", message="The node was low on resource: memory.")
    assert kinds(pod(), evicted) == ["pod_evicted"]
    assert kinds(evicted, evicted) == []
    by_api = pod(conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}])
    (event,) = changes(pod(), by_api, NOW)
    assert "EvictionByEvictionAPI" in event.text


def test_a_pod_that_failed_is_said() -> None:
    assert kinds(pod(), replace(pod(), phase="Failed")) == ["pod_failed"]
