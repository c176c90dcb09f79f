"""A real kubelet: what the recording says of pods and their containers is what the API server says of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from tests.conftest import Needs
from tests.helpers.container_node import told_by
from tests.helpers.recorder_process import recording

from zombiescope.lab import kubernetes_build
from zombiescope.lab.kubernetes import PROGRAMS
from zombiescope.query.containers import Container, containers
from zombiescope.store.reader import open_recording

pytestmark = pytest.mark.containers

IMAGE = "registry.local/ecs-agent:1.2"
PODS = 6
SCRIPT = f"""
image = {IMAGE!r}
def told(api):
    return [one for one in api.ask("/api/v1/namespaces/default/pods")["items"]]
def restarts(api):
    return max((status["restartCount"] for one in told(api) for status in one["status"].get("containerStatuses", [])),
               default=0)
def succeeded(api):
    return sum(one["status"].get("phase") == "Succeeded" for one in told(api))
with cluster(place, cgroup_root=parent, controllers=True) as api:
    api.load(image)
    api.create("pods", pod("steady", container("server", image, ["sleep", "10000"])))
    api.create("pods", pod("leaky", container("agent", image, ["sh", "-c", "exit 7"])))
    one = pod("batch", container("work", image, ["true"]), restart="Never")
    job = {{"apiVersion": "batch/v1", "kind": "Job", "metadata": {{"name": "batch"}},
           "spec": {{"completions": {PODS}, "parallelism": 2, "template": {{"spec": one["spec"]}}}}}}
    api.create("jobs", job, group="/apis/batch/v1")
    end = time.monotonic() + 90
    while (restarts(api) < 2 or succeeded(api) < {PODS}) and time.monotonic() < end:
        time.sleep(0.5)
    tell({{"pods": told(api)}})
"""


class Seen(NamedTuple):
    """By the recorder, and by Kubernetes itself."""

    rows: dict[str, Container]
    pods: list[dict[str, Any]]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    needs = Needs()
    needs.perf_events()
    needs.tracefs()
    needs.memory_cgroup()
    for program, package in PROGRAMS:
        needs.binary(program, package)
    kubernetes_build.binaries()
    place = tmp_path_factory.mktemp("kubernetes")
    with recording(place / "r") as recorder:
        with told_by(SCRIPT) as said:
            recorder.wait_for_frames(2)
        recorder.wait_for_frames(2)
        recorder.stop()
    with open_recording(place / "r") as opened:
        yield Seen(containers(opened, None, None), said["pods"])


def ids(pod: dict[str, Any]) -> Iterator[str]:
    """Of the containers that a pod has and had before, as far as kubelet remembers them."""
    for status in pod["status"]["containerStatuses"]:
        for one in (status, *status["state"].values(), *status["lastState"].values()):
            if one.get("containerID"):
                yield one["containerID"].removeprefix("containerd://")


def test_what_was_to_happen_did(seen: Seen) -> None:
    restarts = {pod["metadata"]["name"]: pod["status"]["containerStatuses"][0]["restartCount"] for pod in seen.pods}
    assert restarts["leaky"] >= 2
    assert restarts["steady"] == 0
    assert sum(name.startswith("batch-") for name in restarts) == PODS


def test_containers_have_their_pod_namespace_image_and_name(seen: Seen) -> None:
    for pod in seen.pods:
        for one in ids(pod):
            row, about = seen.rows[one], pod["metadata"]
            assert (row.pod, row.namespace, row.pod_uid) == (about["name"], about["namespace"], about["uid"])
            assert (row.image, row.name) == (IMAGE, pod["spec"]["containers"][0]["name"])
            assert row.runs == 1, "kubelet makes a new container for every start"


def test_a_pod_that_crashes_has_as_many_containers_as_kubernetes_started(seen: Seen) -> None:
    (leaky,) = [pod for pod in seen.pods if pod["metadata"]["name"] == "leaky"]
    started = leaky["status"]["containerStatuses"][0]["restartCount"] + 1
    assert sum(row.pod == "leaky" and row.name == "agent" for row in seen.rows.values()) >= started


def test_who_only_carries_out_asked_for_nothing(seen: Seen) -> None:
    carriers = {"runc", "containerd", "containerd-shim", "kubelet"}
    assert carriers.isdisjoint({row.requester for row in seen.rows.values()})
