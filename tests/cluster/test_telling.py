"""What the cluster is told, as the real server keeps it: Events with counts, conditions that clear."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.helpers.api_server import ControlPlane

from zombiescope.node.cluster.access import Access
from zombiescope.node.cluster.incident_news import News
from zombiescope.node.cluster.node_conditions import QUIET_S, NodeConditions
from zombiescope.node.cluster.node_events import NodeEvents

pytestmark = pytest.mark.cluster


def incident(identity: str, *, is_open: bool = True) -> News:
    return News(identity, "ZombieMemcg", "ecs.service leaks", is_open, True, frozenset({"CgroupLeak"}), 0.0)


def asked(plane: ControlPlane, work: Callable[[Any], Awaitable[None]]) -> None:
    async def run() -> None:
        client = Access(str(plane.admin())).async_client()
        try:
            await work(client)
        finally:
            await client.close()

    asyncio.run(run())


def events(plane: ControlPlane, node: str) -> list[dict[str, Any]]:
    return plane.items(f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={node}")


def test_an_incident_is_an_event_of_the_node(plane: ControlPlane, own_node: str) -> None:
    async def tell(client: Any) -> None:
        told = NodeEvents(own_node)
        for identity in ("a", "b", "c"):
            await told.tell(client, incident(identity))
        await told.tell(client, incident("a", is_open=False))
        again = NodeEvents(own_node)  # the agent was restarted
        await again.tell(client, incident("a"))

    asked(plane, tell)
    found = {one["reason"]: one for one in events(plane, own_node)}
    assert set(found) == {"ZombieMemcg", "ZombieMemcgOver"}
    assert (found["ZombieMemcg"]["count"], found["ZombieMemcg"]["type"]) == (3, "Warning")
    assert found["ZombieMemcg"]["involvedObject"]["kind"] == "Node"
    assert found["ZombieMemcgOver"]["type"] == "Normal"


def test_an_event_that_the_server_forgot_is_made_anew(plane: ControlPlane, own_node: str) -> None:
    async def tell(client: Any) -> None:
        told = NodeEvents(own_node)
        await told.tell(client, incident("a"))
        (one,) = events(plane, own_node)
        plane.delete(f"/api/v1/namespaces/default/events/{one['metadata']['name']}")
        await told.tell(client, incident("b"))

    asked(plane, tell)
    assert len(events(plane, own_node)) == 1


def test_conditions_clear_and_leave_the_kubelets_alone(plane: ControlPlane, own_node: str) -> None:
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    plane.status(f"/api/v1/nodes/{own_node}", {"conditions": [ready]})
    now = [1_800_000_000.0]

    def conditions() -> dict[str, tuple[str, str]]:
        listed = plane.ask(f"/api/v1/nodes/{own_node}")["status"]["conditions"]
        return {one["type"]: (one["status"], one.get("lastTransitionTime")) for one in listed}

    async def tell(client: Any) -> None:
        ours = NodeConditions(own_node, lambda: now[0])
        await ours.settle(client, [incident("a")], None)
        first = conditions()
        assert first["CgroupLeak"][0] == "True"
        assert first["Ready"][0] == "True"
        now[0] += 400
        restarted = NodeConditions(own_node, lambda: now[0])
        await restarted.settle(client, [incident("b")], None)
        assert conditions()["CgroupLeak"] == first["CgroupLeak"], "the same status since then"
        now[0] += QUIET_S + 1
        await restarted.settle(client, [], None)
        assert conditions()["CgroupLeak"][0] == "False"
        await restarted.settle(client, [], "no recorder runs")
        assert {one[0] for kind, one in conditions().items() if kind != "Ready"} == {"Unknown"}
        assert conditions()["Ready"][0] == "True"

    asked(plane, tell)
