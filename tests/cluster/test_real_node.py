"""One real kubelet: a pod in a crash loop is named by pod, container, image and owner while it happens, and so are the
cgroups that it leaves behind."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.conftest import Needs
from tests.helpers.cli import Cli
from tests.helpers.container_node import told_by
from tests.helpers.recorder_process import recording

from zombiescope.lab import kubernetes_build
from zombiescope.lab.kubernetes import PROGRAMS
from zombiescope.query.containers import Container, containers
from zombiescope.query.events import events
from zombiescope.store.reader import Recording, open_recording

pytestmark = pytest.mark.cluster

IMAGE = "registry.local/ecs-agent:1.2"
SOON_US = 10_000_000
SCRIPT = """
import threading
from zombiescope.base.feed import Feed
from zombiescope.agent import parts
from zombiescope.agent.health import Health
from zombiescope.agent.kubernetes import KubernetesSection, KubernetesService
from zombiescope.agent.service import Context
from zombiescope.agent.tally import Tally
image = {image!r}
def restarts(api):
    pods = api.ask("/api/v1/namespaces/default/pods")["items"]
    return max((status["restartCount"] for one in pods for status in one["status"].get("containerStatuses", [])),
               default=0)
CRASH = "read -r name </proc/sys/kernel/random/uuid; echo state >/data/$name; exit 7"
tmpfs(place / "pins")
with cluster(place, cgroup_root=parent, controllers=True) as api:
    lines = []
    context = Context("kubernetes", Path("/nowhere"), "n", "n", Tally(parts.families()), Health(lines.append))
    service = KubernetesService(KubernetesSection(True, str(place / "kubeconfig"), NODE), Feed([{runtime!r}]))
    threading.Thread(target=service.run, args=(context, threading.Event()), daemon=True).start()
    api.load(image)
    # A page in a tmpfs that is charged to the container outlives it: its cgroup stays as a zombie.
    pins = {{"name": "state", "hostPath": {{"path": str(place / "pins")}}}}
    mounts = [{{"name": "state", "mountPath": "/data"}}]
    agent = container("agent", image, ["sh", "-c", CRASH], volumeMounts=mounts)
    one = pod("crash", agent, volumes=[pins], restart="OnFailure")
    job = {{"apiVersion": "batch/v1", "kind": "Job", "metadata": {{"name": "crash"}},
           "spec": {{"backoffLimit": 20, "template": {{"spec": one["spec"]}}}}}}
    api.create("jobs", job, group="/apis/batch/v1")
    end = time.monotonic() + 120
    while restarts(api) < 2 and time.monotonic() < end:
        time.sleep(0.5)
    time.sleep(3)
    tell({{"restarts": restarts(api), "lines": lines}})
"""


class Seen(NamedTuple):
    recording: Recording
    rows: dict[str, Container]
    said: dict[str, Any]
    place: Path
    up_us: int
    """When the node was still up."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    needs = Needs()
    needs.perf_events()
    needs.tracefs()
    needs.memory_cgroup()
    for program, package in PROGRAMS:
        needs.binary(program, package)
    kubernetes_build.binaries()
    place: Path = tmp_path_factory.mktemp("node")
    with recording(place / "r") as recorder:
        with told_by(SCRIPT.format(image=IMAGE, runtime=str(place / "runtime"))) as said:
            recorder.wait_for_frames(2)
            up_us = time.time_ns() // 1000
        recorder.wait_for_frames(2)
        recorder.stop()
    with open_recording(place / "r") as opened:
        yield Seen(opened, containers(opened, None, None), said, place / "r", up_us)


def crashed(seen: Seen) -> list[Container]:
    return [one for one in seen.rows.values() if one.name == "agent"]


def test_it_crashed(seen: Seen) -> None:
    assert seen.said["restarts"] >= 2
    assert seen.said["lines"] == []


def test_every_container_of_the_loop_has_pod_image_and_owner(seen: Seen) -> None:
    assert len(crashed(seen)) >= 2
    for one in crashed(seen):
        assert (one.image, one.owner, one.namespace) == (IMAGE, "Job/crash", "default")
        assert (one.pod or "").startswith("crash-")


def test_the_owner_is_known_within_ten_seconds_of_the_start(seen: Seen) -> None:
    rows = seen.recording.table("containers", None, None).to_pylist()
    named = [row for row in rows if row["owner"] and row["name"] == "agent"]
    first = min(named, key=lambda row: row["time"])
    assert (first["time"] - first["started"]).total_seconds() * 1e6 < SOON_US


def test_its_zombies_are_the_jobs(seen: Seen, tmp_path: Path) -> None:
    """As `zombiescope cgroups` names them, while the node was up and its tmpfs with it."""
    done = Cli(tmp_path)("cgroups", str(seen.place), "--to", str(seen.up_us / 1e6), "--json")
    left = [leak for leak in done.document["leaks"] if leak["dying"] and "kubepods" in leak["path"]]
    assert sum(leak["dying"] for leak in left) >= 2, done.document["leaks"]
    for leak in left:
        assert leak["charged_to"].startswith("pod default/crash-")
        assert "of Job/crash" in leak["charged_to"]
        assert IMAGE in leak["charged_to"]


def test_restarts_are_on_the_axis(seen: Seen) -> None:
    found = [one for one in events(seen.recording, None, None) if one.kind == "pod_restarted"]
    assert found
    assert "Job/crash" in found[0].text
    assert "exit 7" in found[0].text
