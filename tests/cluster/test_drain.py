"""Cordon, drain and permits against a real API server: budgets in the way, DaemonSets, races, and taking it back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.helpers.api_server import ControlPlane, pod, running
from tests.helpers.pod_follower import until

from zombiescope.fix import actions, node_steps
from zombiescope.fix.apply import apply
from zombiescope.fix.log import opened
from zombiescope.fix.node_steps import NodeRequest
from zombiescope.model.plans.plan import Plan
from zombiescope.node.cluster import drain, maintenance
from zombiescope.node.cluster.access import Access, ClusterError
from zombiescope.node.cluster.drain import Consent, Drain
from zombiescope.node.cluster.maintenance import CordonNode, DrainNode, Permits

if TYPE_CHECKING:
    from lightkube import Client

pytestmark = pytest.mark.cluster


@pytest.fixture
def client(plane: ControlPlane) -> Iterator[Client]:
    made = Access(str(plane.admin())).client()
    yield made
    made.close()


def owned(kind: str, name: str) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "0", "controller": True}
    return {"ownerReferences": [reference]}


def budget(plane: ControlPlane, namespace: str, name: str, least: int) -> None:
    spec = {"minAvailable": least, "selector": {"matchLabels": {"app": "web"}}}
    path = f"/apis/policy/v1beta1/namespaces/{namespace}/poddisruptionbudgets"
    plane.create(path, {"metadata": {"name": name}, "spec": spec})
    until(lambda: plane.ask(f"{path}/{name}").get("status", {}).get("observedGeneration") == 1)


def web(plane: ControlPlane, namespace: str, node: str, replicas: int) -> list[str]:
    """A Deployment's pods on a node, as ready as if a kubelet ran them."""
    spec = pod("x", node)["spec"]
    del spec["terminationGracePeriodSeconds"]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    selector = {"matchLabels": {"app": "web"}}
    plane.create(
        path, {"metadata": {"name": "web"}, "spec": {"replicas": replicas, "selector": selector, "template": template}}
    )
    pods = f"/api/v1/namespaces/{namespace}/pods"
    until(lambda: len(plane.items(pods)) == replicas)
    names = [one["metadata"]["name"] for one in plane.items(pods)]
    for name in names:
        plane.status(f"{pods}/{name}", running())
    return names


def no_more(plane: ControlPlane, namespace: str) -> None:
    """The Deployment makes no new pods: there is no scheduler that would put them elsewhere."""
    plane.delete(f"/apis/apps/v1/namespaces/{namespace}/deployments/web")
    for one in plane.items(f"/apis/apps/v1/namespaces/{namespace}/replicasets"):
        plane.delete(f"/apis/apps/v1/namespaces/{namespace}/replicasets/{one['metadata']['name']}")


def kubelet(plane: ControlPlane, namespace: str, over: threading.Event) -> threading.Thread:
    """In the place of one: what is to be deleted is gone after a moment."""

    def run() -> None:
        while not over.wait(0.2):
            for one in plane.items(f"/api/v1/namespaces/{namespace}/pods"):
                if one["metadata"].get("deletionTimestamp"):
                    plane.delete(f"/api/v1/namespaces/{namespace}/pods/{one['metadata']['name']}")

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.fixture
def ended(plane: ControlPlane, namespace: str) -> Iterator[None]:
    over = threading.Event()
    thread = kubelet(plane, namespace, over)
    yield
    over.set()
    thread.join(10)


def test_a_budget_in_the_way_is_waited_for_and_said(
    plane: ControlPlane, client: Client, own_node: str, namespace: str, ended: None
) -> None:
    web(plane, namespace, own_node, 2)
    budget(plane, namespace, "web", 2)
    lines: list[str] = []
    waits = 0

    def sleep(_seconds: float) -> None:
        nonlocal waits
        waits += 1
        if waits == 3:
            path = f"/apis/policy/v1beta1/namespaces/{namespace}/poddisruptionbudgets/web"
            plane.ask(path, {"spec": {"minAvailable": 0}}, "PATCH", "merge")
        threading.Event().wait(0.3)

    no_more(plane, namespace)
    done = Drain(client, own_node, told=lines.append, sleep=sleep, timeout_s=60).run()
    assert len(done.evicted) == 2
    assert plane.items(f"/api/v1/namespaces/{namespace}/pods") == []
    assert any("disruption budget" in line for line in lines)
    assert len(lines) <= 2, "said once for each pod"
    assert waits >= 3


def test_a_budget_that_never_gives_way_ends_the_drain_with_its_name(
    plane: ControlPlane, client: Client, own_node: str, namespace: str
) -> None:
    web(plane, namespace, own_node, 1)
    budget(plane, namespace, "web", 1)
    ticks = iter(range(0, 10_000, 200))
    with pytest.raises(ClusterError) as raised:
        Drain(client, own_node, timeout_s=500, sleep=lambda _: None, clock=lambda: next(ticks)).run()
    assert "disruption budget" in str(raised.value)
    assert "kubectl get pdb" in str(raised.value)
    assert len(plane.items(f"/api/v1/namespaces/{namespace}/pods")) == 1


def test_two_budgets_for_one_pod_are_the_servers_500_and_end_the_drain(
    plane: ControlPlane, client: Client, own_node: str, namespace: str
) -> None:
    web(plane, namespace, own_node, 1)
    budget(plane, namespace, "one", 0)
    budget(plane, namespace, "two", 0)
    ticks = iter(range(0, 10_000, 200))
    with pytest.raises(ClusterError, match="more than one PodDisruptionBudget"):
        Drain(client, own_node, timeout_s=500, sleep=lambda _: None, clock=lambda: next(ticks)).run()


def test_what_stays_what_is_refused_and_what_goes(
    plane: ControlPlane, client: Client, own_node: str, namespace: str
) -> None:
    mirror = {"annotations": {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.hash": "x"}}
    unsafe = {"annotations": {drain.SAFE_TO_EVICT: "false"}}
    local = {"volumes": [{"name": "d", "emptyDir": {}}]}
    for one in (
        pod("exporter", own_node, **owned("DaemonSet", "exporter")),
        pod("static", own_node, **mirror),
        pod("alone", own_node),
        pod("scratch", own_node, **owned("StatefulSet", "db"), spec=local),
        pod("held", own_node, **owned("StatefulSet", "db"), **unsafe),
        pod("plain", own_node, **owned("StatefulSet", "db")),
    ):
        plane.create(f"/api/v1/namespaces/{namespace}/pods", one)
    found = drain.plan(client, own_node)
    assert {one.name for one, _ in found.staying} == {"exporter", "static"}
    assert {one.name for one, _ in found.refused} == {"alone", "scratch", "held"}
    assert [one.name for one in found.evicted] == ["plain"]
    with pytest.raises(ClusterError, match="not evicted without consent"):
        Drain(client, own_node).run()
    assert len(plane.items(f"/api/v1/namespaces/{namespace}/pods")) == 6, "nothing was touched"
    everything = drain.plan(client, own_node, Consent(local_data=True, unmanaged=True, unsafe=True))
    assert {one.name for one in everything.evicted} == {"alone", "scratch", "held", "plain"}


def test_uncordon_takes_back_only_our_own(plane: ControlPlane, client: Client, own_node: str) -> None:
    path = f"/api/v1/nodes/{own_node}"
    assert not maintenance.cordon(client, own_node, "leak \x1b[2J").unschedulable
    assert plane.ask(path)["spec"]["unschedulable"]
    assert plane.ask(path)["metadata"]["annotations"][maintenance.OURS] == r"leak \x1b[2J"
    assert maintenance.uncordon(client, own_node)
    assert "unschedulable" not in plane.ask(path)["spec"]
    plane.ask(path, {"spec": {"unschedulable": True}}, "PATCH")
    maintenance.cordon(client, own_node, "again")
    assert not maintenance.uncordon(client, own_node)
    assert plane.ask(path)["spec"]["unschedulable"], "somebody else wanted that"


def test_a_node_that_kured_reboots_is_left_alone(plane: ControlPlane, client: Client, own_node: str) -> None:
    plane.ask(f"/api/v1/nodes/{own_node}", {"metadata": {"annotations": {maintenance.KURED: "x"}}}, "PATCH")
    with pytest.raises(ClusterError, match="kured"):
        maintenance.cordon(client, own_node, "why")


def test_permits_are_for_so_many_nodes_and_no_more(client: Client, namespace: str) -> None:
    first, second, third = (Permits(client, f"n{number}", namespace, most=2) for number in range(3))
    assert first.take() == first.take() == first.held()
    second.take()
    with pytest.raises(ClusterError, match="n0, n1"):
        third.take()
    assert first.give_back()
    assert third.take()
    assert first.held() is None


def test_of_ten_at_once_one_gets_it(plane: ControlPlane, namespace: str) -> None:
    won: list[str] = []

    def race(name: str) -> None:
        made = Access(str(config)).client()
        try:
            Permits(made, name, namespace).take()
            won.append(name)
        except ClusterError:
            pass
        finally:
            made.close()

    config = plane.admin()
    threads = [threading.Thread(target=race, args=(f"n{number}",)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(won) == 1


def test_a_permit_is_free_after_its_time_and_a_margin_for_clocks(client: Client, namespace: str) -> None:
    now = [1_800_000_000.0]
    Permits(client, "gone", namespace, clock=lambda: now[0]).take()
    other = Permits(client, "other", namespace, clock=lambda: now[0])
    now[0] += maintenance.DURATION_S + 60
    with pytest.raises(ClusterError):
        other.take()
    now[0] += maintenance.SKEW_S
    assert other.take()


def test_the_steps_of_a_fix_and_their_undo(plane: ControlPlane, own_node: str, namespace: str, ended: None) -> None:
    plane.create(f"/api/v1/namespaces/{namespace}/pods", pod("plain", own_node, **owned("StatefulSet", "db")))
    config = str(plane.admin())
    first = CordonNode(own_node, config, "core starved")
    second = DrainNode(own_node, config, namespace=namespace, timeout_s=60)
    with pytest.raises(ClusterError, match="cordon it first"):
        second.apply()
    before = first.before()
    first.apply()
    first.apply()
    assert first.is_applied()
    assert any("evict" in line for line in second.touches())
    noted = second.before()
    second.apply()
    assert second.is_applied()
    assert plane.items(f"/api/v1/namespaces/{namespace}/pods") == []
    second.undo(noted)
    first.undo(before)
    assert not first.is_applied()


def test_fix_does_the_steps_of_a_node_logs_them_and_takes_them_back(
    plane: ControlPlane, own_node: str, namespace: str, tmp_path: Path, ended: None
) -> None:
    plane.create(f"/api/v1/namespaces/{namespace}/pods", pod("plain", own_node, **owned("StatefulSet", "db")))
    made = tuple(node_steps.steps(own_node, NodeRequest(kubeconfig=str(plane.admin()), namespace=namespace)))
    with opened(tmp_path / "log") as log:
        done = apply(Plan("node", "drain", made, None, own_node), log, lambda _: True)
        entries = log.entries()
    assert [step.state for step in done.steps] == ["applied", "applied"]
    assert plane.items(f"/api/v1/namespaces/{namespace}/pods") == []
    assert plane.ask(f"/api/v1/nodes/{own_node}")["spec"]["unschedulable"]
    (log_entry,) = [one for one in entries if one.event == "applied" and one.step == made[0].id]
    again = actions.make(log_entry.action["kind"], log_entry.action["arguments"])  # type: ignore[index]
    again.undo(log_entry.before or {})
    assert "unschedulable" not in plane.ask(f"/api/v1/nodes/{own_node}")["spec"]


def test_a_step_that_the_server_refuses_is_a_failed_step(plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    made = tuple(node_steps.steps("no-such-node", NodeRequest(kubeconfig=str(plane.admin()), namespace=namespace)))
    assert "no-such-node" in made[0].why
    with opened(tmp_path / "log") as log:
        done = apply(Plan("node", "drain", made, None, "x"), log, lambda _: True)
    assert done.steps[0].state == "failed"
    assert "not found" in done.steps[0].why
