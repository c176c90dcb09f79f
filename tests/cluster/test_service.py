"""The agent's service on a real API server: pods reach the recorder, incidents the cluster, with the chart's rights."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.test_rbac import install
from tests.helpers.api_server import ControlPlane, pod, running
from tests.helpers.pod_follower import until

from zombiescope.agent import kubernetes, parts
from zombiescope.agent.health import Health
from zombiescope.agent.kubernetes import KubernetesSection, KubernetesService
from zombiescope.agent.part_watch import PartWatch
from zombiescope.agent.service import Context
from zombiescope.agent.tally import Tally
from zombiescope.base import feed as _feed
from zombiescope.base.feed import Feed
from zombiescope.recorder.feed import Fed, FedPod, FeedSocket
from zombiescope.store import health, incident_file, locate
from zombiescope.store.event import Event
from zombiescope.store.health import LIVE_DIAGNOSIS, RECORDER, Part

pytestmark = pytest.mark.cluster
NOW = 1_800_000_000_000_000
LEAK = {
    "id": "i1", "state": "open", "severity": "critical", "from": 1.0, "symptoms": [{"kind": "core_saturated"}],
    "causes": [{"pattern": "zombie-memcg", "summary": "ecs.service leaks"}],
}  # fmt: skip


class Agent:
    """The service in its thread, and the recorder's end of the feed."""

    def __init__(self, place: Path, section: KubernetesSection) -> None:
        self.door = FeedSocket(place / _feed.SOCKET)
        self.lines: list[str] = []
        self.told: list[Fed] = []
        self.node_dir = place
        self._stop = threading.Event()
        context = Context("kubernetes", place, "n", "n", Tally(parts.families()), Health(self.lines.append))
        self.health = context.health
        service = KubernetesService(section, Feed([str(place)]))
        self._thread = threading.Thread(target=service.run, args=(context, self._stop))
        self._thread.start()

    @property
    def state(self) -> str | None:
        known = self.health.conditions().get("kubernetes")
        return None if known is None else known.state

    def take(self) -> list[Fed]:
        self.told += self.door.read(NOW)
        return self.told

    def close(self) -> None:
        self._stop.set()
        self._thread.join(15)
        assert not self._thread.is_alive()
        self.door.close()


@pytest.fixture
def rights(plane: ControlPlane, namespace: str) -> Iterator[Path]:
    made = install(plane, namespace, 'kubernetes={"conditions":true}')
    yield plane.account(namespace, "zombiescope")
    for path in made:
        plane.delete(path)


@pytest.fixture
def agent(rights: Path, own_node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    monkeypatch.setenv("ZOMBIESCOPE_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(kubernetes, "LOOK_S", 0.2)
    monkeypatch.setattr(kubernetes, "FEED_S", 0.1)
    monkeypatch.setattr(locate, "is_locked", lambda _: True)
    made = Agent(tmp_path, KubernetesSection(True, str(rights), own_node, True, True))
    yield made
    made.close()


def statuses(plane: ControlPlane, node: str) -> dict[str, str]:
    listed: list[dict[str, Any]] = plane.ask(f"/api/v1/nodes/{node}")["status"].get("conditions", [])
    return {one["type"]: one["status"] for one in listed}


def test_a_restarted_container_is_an_event_and_its_pod_is_known(
    plane: ControlPlane, agent: Agent, own_node: str, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    plane.create(path, pod("trainer", own_node))
    until(lambda: any(isinstance(one, FedPod) and one.name == "trainer" for one in agent.take()))
    ended = {"terminated": {"exitCode": 3, "reason": "Error"}}
    plane.status(f"{path}/trainer", running(restarts=1, lastState=ended, containerID="containerd://" + "a" * 64))
    until(lambda: any(isinstance(one, Event) and one.kind == "pod_restarted" for one in agent.take()))
    (event,) = [one for one in agent.told if isinstance(one, Event)]
    assert event.fields["container_name"] == "main"
    assert "exit 3" in event.text
    last = [one for one in agent.told if isinstance(one, FedPod)][-1]
    assert [one.id for one in last.containers] == ["a" * 64]
    assert agent.state == "ok"


def test_a_server_that_is_away_is_on_the_axis(plane: ControlPlane, agent: Agent) -> None:
    until(lambda: agent.state == "ok")
    plane.stop_server(at_once=True)
    until(lambda: any(isinstance(one, Event) and one.kind == "kubernetes_away" for one in agent.take()), 60)
    assert agent.state == "degraded"
    plane.start_server()
    until(lambda: any(isinstance(one, Event) and one.kind == "kubernetes_back" for one in agent.take()), 60)
    until(lambda: agent.state == "ok")


def test_a_dead_live_diagnosis_is_an_event_of_the_node(
    plane: ControlPlane, agent: Agent, own_node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it fails while the server is away."""
    monkeypatch.setattr(PartWatch, "quiet_s", 1.0)

    def events() -> dict[str, dict[str, Any]]:
        listed = plane.items(f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={own_node}")
        return {one["reason"]: one for one in listed if LIVE_DIAGNOSIS in one["message"]}

    path = health.path_of(agent.node_dir, os.getpid())
    until(lambda: agent.state == "ok")
    plane.stop_server(at_once=True)
    dead = Part(LIVE_DIAGNOSIS, "failed", 100.0, why="failed: self-test: it died of SIGSEGV", failures=1)
    health.publish(path, RECORDER, agent.node_dir, [dead])
    plane.start_server()

    def reported() -> dict[str, dict[str, Any]]:
        # A stand-in for the recorder: it has to beat while the server comes back.
        health.publish(path, RECORDER, agent.node_dir, [dead])
        return events()

    until(lambda: "ZombiescopePartFailed" in reported(), 90)
    event = events()["ZombiescopePartFailed"]
    assert event["message"] == "zombiescope: live diagnosis failed: self-test: it died of SIGSEGV"
    assert (event["type"], event["involvedObject"]["kind"]) == ("Warning", "Node")
    dead = replace(dead, state="ok")
    until(lambda: "ZombiescopePartRecovered" in reported(), 60)
    assert events()["ZombiescopePartRecovered"]["type"] == "Normal"


def test_an_incident_is_told_and_conditions_are_unknown_when_the_agent_ends(
    plane: ControlPlane, agent: Agent, own_node: str
) -> None:
    until(lambda: set(statuses(plane, own_node).values()) == {"False"})
    incident_file.write(agent.node_dir, [LEAK], NOW)
    until(lambda: statuses(plane, own_node).get("CgroupLeak") == "True")
    events = plane.items(f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={own_node}")
    assert [one["reason"] for one in events] == ["ZombieMemcg"]
    agent.close()
    assert set(statuses(plane, own_node).values()) == {"Unknown"}
    agent.door = FeedSocket(agent.node_dir / _feed.SOCKET)
    assert agent.lines == []
