"""RayJobs and RayClusters of KubeRay: what their status says, when it is news, and which of them are followed."""

from __future__ import annotations

from typing import Any

import pytest

from zombiescope.node.cluster import pod
from zombiescope.node.cluster.ray_watch import RAY_CLUSTER, RAY_JOB, RayObject, changes, parse, wanted

NOW_US = 1_800_000_000_000_000


def job(status: str | None, **more: Any) -> RayObject:
    about = {"name": "train", "namespace": "ml"}
    found = parse(RAY_JOB, {"metadata": about, "status": {"jobId": "train-abc", "jobStatus": status, **more}})
    assert found is not None
    return found


def cluster(available: int, desired: int = 4, state: str = "ready") -> RayObject:
    about = {"name": "train-xyz", "namespace": "ml"}
    workers = {"availableWorkerReplicas": available, "desiredWorkerReplicas": desired}
    found = parse(RAY_CLUSTER, {"metadata": about, "status": {"state": state, **workers}})
    assert found is not None
    return found


def news(*several: RayObject) -> list[tuple[str, str]]:
    before: list[RayObject | None] = [None, *several]
    return [(event.kind, event.text) for old, new in zip(before, several, strict=False)
            for event in changes(old, new, NOW_US)]  # fmt: skip


def test_a_job_runs_and_fails_once() -> None:
    failed = job("FAILED", reason="AppFailed", message="exit code 1")
    said = news(job(None), job("PENDING"), job("RUNNING"), job("RUNNING"), failed, failed)
    assert said == [
        ("rayjob_started", "RayJob ml/train runs"),
        ("rayjob_failed", "RayJob ml/train failed (AppFailed)"),
    ]
    (event,) = changes(job("RUNNING"), failed, NOW_US)
    assert (event.at_us, event.severity) == (NOW_US, "warning")
    assert event.fields["submission_id"] == "train-abc"
    assert event.fields["owner"] == "RayJob/train"
    assert event.fields["said"] == "exit code 1"


def test_what_was_over_before_anybody_looked_is_no_news() -> None:
    assert news(job("FAILED")) == []
    assert news(job("SUCCEEDED"), job("SUCCEEDED")) == []


def test_a_deadline_that_passed_is_a_failure_without_a_word_of_rays() -> None:
    late = job("RUNNING", jobDeploymentStatus="Failed", reason="DeadlineExceeded")
    assert news(job("RUNNING"), late)[1:] == [("rayjob_failed", "RayJob ml/train failed (DeadlineExceeded)")]


def test_how_long_it_ran_is_told_when_it_is_over() -> None:
    over = job("FAILED", startTime="2026-01-02T03:04:05Z", endTime="2026-01-02T05:04:05Z")
    (event,) = changes(job("RUNNING", startTime="2026-01-02T03:04:05Z"), over, NOW_US)
    assert event.fields["ran_s"] == 7200.0


def test_a_cluster_that_loses_a_worker_is_told_when_it_does_and_when_it_is_whole_again() -> None:
    said = news(cluster(4), cluster(3), cluster(2), cluster(4), cluster(4, state="failed"))
    assert said == [
        ("raycluster_unhealthy", "RayCluster ml/train-xyz has 3 of 4 workers"),
        ("raycluster_healthy", "RayCluster ml/train-xyz is whole again"),
        ("raycluster_unhealthy", "RayCluster ml/train-xyz is failed"),
    ]


def test_a_cluster_that_is_being_built_is_not_unhealthy() -> None:
    assert news(cluster(0), cluster(2)) == []


@pytest.mark.parametrize("hostile", [None, 7, [], "x" * 9999, {"jobStatus": 7}, {"jobStatus": ["FAILED"], "jobId": {}},
                                     {"state": {}, "desiredWorkerReplicas": "9"}])  # fmt: skip
@pytest.mark.parametrize("kind", [RAY_JOB, RAY_CLUSTER])
def test_nothing_in_an_object_breaks_it(kind: str, hostile: Any) -> None:
    found = parse(kind, {"metadata": {"name": "x" * 9999}, "status": hostile})
    assert found is not None
    assert len(found.name) <= 253
    assert list(changes(found, found, NOW_US)) == []
    assert parse(kind, {"metadata": hostile}) is None


def test_those_that_have_pods_here_are_followed() -> None:
    labels = {"ray.io/cluster": "train-xyz", "ray.io/originated-from-crd": "RayJob",
              "ray.io/originated-from-cr-name": "train"}  # fmt: skip
    about = {"uid": "u", "name": "train-xyz-worker-1", "namespace": "ml", "labels": labels}
    worker = pod.parse({"metadata": about})
    other = pod.parse({"metadata": {"uid": "v", "name": "web", "namespace": "ml"}})
    assert worker is not None
    assert other is not None
    assert wanted([worker, other]) == {(RAY_CLUSTER, "ml", "train-xyz"), (RAY_JOB, "ml", "train")}
