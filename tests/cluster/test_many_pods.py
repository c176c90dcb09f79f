"""A cluster of ten thousand pods: a node is told of its own, and one that would be told of all is bounded."""

from __future__ import annotations

import asyncio
import concurrent.futures
import tracemalloc

import pytest
from tests.helpers.api_server import ControlPlane, node, pod
from tests.helpers.pod_follower import following, until

from zombiescope.node.cluster import pod_watch
from zombiescope.node.cluster.access import Access

pytestmark = pytest.mark.cluster
CLUSTER = 10_000
OWN = 100


@pytest.fixture(scope="module")
def crowd(plane: ControlPlane) -> str:
    """Most are on a node of their own, as large as no node is."""
    plane.create("/api/v1/namespaces", {"metadata": {"name": "crowd"}})
    for name in ("crowded", "quiet"):
        plane.create("/api/v1/nodes", node(name))

    def make(number: int) -> None:
        on = "quiet" if number < OWN else "crowded"
        labels = {f"label-{key}": "x" * 50 for key in range(5)}
        plane.create("/api/v1/namespaces/crowd/pods", pod(f"p{number}", on, labels=labels))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(make, range(CLUSTER)))
    return "crowd"


@pytest.mark.timeout(1500)
def test_a_node_keeps_its_own_pods_of_ten_thousand(plane: ControlPlane, crowd: str) -> None:
    with following("quiet", plane.admin()) as follower:
        until(lambda: len(follower.names) == OWN, 60)
        assert follower.watch.refused == 0


def test_all_of_them_on_one_node_cost_bounded_memory(plane: ControlPlane, crowd: str) -> None:
    watch = pod_watch.PodWatch(
        "crowded", on_pod=lambda _: None, on_gone=lambda _: None, on_event=lambda _: None, say=lambda _: None
    )

    async def once() -> None:
        client = Access(str(plane.admin())).async_client()
        try:
            await watch._list(client)
        finally:
            await client.close()

    tracemalloc.start()
    try:
        asyncio.run(once())
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(watch.pods) == pod_watch.MAX_PODS
    assert watch.refused == CLUSTER - OWN - pod_watch.MAX_PODS
    assert kept < 12_000_000, f"{kept / pod_watch.MAX_PODS:.0f} bytes a pod"
    assert peak < 40_000_000
