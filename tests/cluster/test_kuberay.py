"""RayJobs and RayClusters of a real API server: with KubeRay's CRDs, without them, and without the right to read them.

The operator is not there: the test writes the status that it would.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.test_rbac import install
from tests.helpers.api_server import ControlPlane, pod
from tests.helpers.pod_follower import until

from zombiescope.node.cluster import pod as pods
from zombiescope.node.cluster import ray_watch
from zombiescope.node.cluster.access import Access
from zombiescope.node.cluster.changes import PodEvent
from zombiescope.node.cluster.ray_watch import RayWatch

pytestmark = pytest.mark.cluster
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LABELS = {"ray.io/cluster": "train-xyz", "ray.io/originated-from-crd": "RayJob",
          "ray.io/originated-from-cr-name": "train"}  # fmt: skip


def definition(kind: str, plural: str) -> dict[str, Any]:
    """With the status as a part of its own, as KubeRay defines them."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
               "schema": {"openAPIV3Schema": schema}}  # fmt: skip
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.ray.io"},
        "spec": {"group": "ray.io", "scope": "Namespaced", "names": names, "versions": [version]},
    }  # fmt: skip


@pytest.fixture
def kuberay(plane: ControlPlane) -> Iterator[None]:
    kinds = {"RayJob": "rayjobs", "RayCluster": "rayclusters"}
    for kind, plural in kinds.items():
        plane.create(CRDS, definition(kind, plural))
    for plural in kinds.values():
        until(lambda plural=plural: _served(plane, plural))  # type: ignore[misc]
    yield
    for plural in kinds.values():
        plane.delete(f"{CRDS}/{plural}.ray.io")


def _served(plane: ControlPlane, plural: str) -> bool:
    conditions = plane.ask(f"{CRDS}/{plural}.ray.io").get("status", {}).get("conditions", [])
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


class Following:
    def __init__(self) -> None:
        self.events: list[PodEvent] = []
        self.lines: list[str] = []
        self.known: dict[Any, Any] = {}

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


@contextmanager
def following(kubeconfig: Path, namespace: str) -> Iterator[Following]:
    """A watch of what has the labels above, in a thread of its own."""
    found, over = Following(), threading.Event()
    mine = pods.parse(pod("train-xyz-worker", "here", labels=LABELS, uid="u", namespace=namespace))
    assert mine is not None

    async def run() -> None:
        watch = RayWatch(Access(str(kubeconfig), "here").async_client, found.events.append, found.lines.append)
        found.known = watch.known
        while not over.is_set():
            watch.follow([mine])
            await asyncio.sleep(0.05)
        await watch.close()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture
def account(plane: ControlPlane, namespace: str) -> Iterator[Path]:
    made = install(plane, namespace)
    yield plane.account(namespace, "zombiescope")
    for path in made:
        plane.delete(path)


def test_a_job_that_fails_and_a_cluster_that_loses_a_worker(
    plane: ControlPlane, account: Path, namespace: str, kuberay: None
) -> None:
    base = f"/apis/ray.io/v1/namespaces/{namespace}"
    for kind, plural, name in (("RayJob", "rayjobs", "train"), ("RayCluster", "rayclusters", "train-xyz")):
        plane.create(f"{base}/{plural}", {"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": name}})

    def status(path: str, said: dict[str, Any]) -> None:
        plane.ask(f"{base}/{path}/status", {"status": said}, "PATCH", "merge")

    with following(account, namespace) as found:
        until(lambda: len(found.known) == 2)
        status("rayjobs/train", {"jobId": "train-abc", "jobStatus": "RUNNING", "jobDeploymentStatus": "Running"})
        status("rayclusters/train-xyz", {"state": "ready", "desiredWorkerReplicas": 2, "availableWorkerReplicas": 2})
        until(lambda: found.kinds == ["rayjob_started"])
        until(lambda: any(one.workers == (2, 2) for one in found.known.values()))
        # The server goes away and comes back: the watch goes on, and what happened meanwhile is told once.
        plane.stop_server(at_once=True)
        plane.start_server()
        status("rayclusters/train-xyz", {"availableWorkerReplicas": 1})
        until(lambda: "raycluster_unhealthy" in found.kinds, 60)
        status("rayjobs/train", {"jobStatus": "FAILED", "jobDeploymentStatus": "Failed", "reason": "AppFailed"})
        until(lambda: "rayjob_failed" in found.kinds, 60)
    assert found.kinds == ["rayjob_started", "raycluster_unhealthy", "rayjob_failed"]
    assert found.events[-1].text == f"RayJob {namespace}/train failed (AppFailed)"
    assert found.events[-1].fields["submission_id"] == "train-abc"
    assert found.lines == []


def test_without_kuberay_that_is_said_once(
    plane: ControlPlane, account: Path, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_watch, "FIRST_REFUSED_S", 0.1)
    with following(account, namespace) as found:
        until(lambda: found.lines)
    (line,) = found.lines
    assert "not followed: 404" in line
    assert found.events == []
