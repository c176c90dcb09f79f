"""`zombiescope fix --drain --reboot` from the command line, against a real API server, with the rights that the chart
gives its remediation account. systemd and `shutdown` are stand-ins: this is about the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.test_drain import ended, owned
from tests.cluster.test_rbac import install
from tests.helpers.api_server import ControlPlane, pod
from tests.helpers.cli import Done
from tests.helpers.remedies import StandInManager
from tests.unit.cli.test_fix import UNIT, Here, bus, cli, incident, place, steps
from tests.unit.cli.test_fix_node import shutdown

__all__ = ["bus", "cli", "ended", "place", "shutdown"]

pytestmark = pytest.mark.cluster
LOCAL = {"volumes": [{"name": "shm", "emptyDir": {}}]}


@pytest.fixture
def rights(plane: ControlPlane, namespace: str) -> Iterator[dict[str, Path]]:
    """Kubeconfigs of the chart's two accounts."""
    made = install(plane, namespace, 'remediation={"enabled":true}')
    names = {"agent": "zombiescope", "remediation": "zombiescope-remediation"}
    yield {name: plane.account(namespace, account) for name, account in names.items()}
    for path in made:
        plane.delete(path)


@pytest.fixture
def jobs(plane: ControlPlane, own_node: str, namespace: str) -> str:
    """The path of pods that a node has: one that moves, one that loses its scratch, one of every node."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    for one in (
        pod("web", own_node, **owned("StatefulSet", "web")),
        pod("train", own_node, **owned("StatefulSet", "train"), spec=LOCAL),
        pod("exporter", own_node, **owned("DaemonSet", "exporter")),
    ):
        plane.create(path, one)
    return path


class Fix:
    """The command for one incident, with an account of the cluster."""

    def __init__(self, cli: Here, place: Path, node: str, namespace: str) -> None:
        self._cli = cli
        self._words = ["fix", str(place), "--incident", incident(cli, place), "--json"]
        self._node = ["--kube-node", node, "--lease-namespace", namespace]

    def __call__(self, config: Path, *words: str) -> Done:
        return self._cli(*self._words, *self._node, "--kubeconfig", str(config), *words)

    def undo(self, *words: str) -> Done:
        return self._cli(*self._words, "--undo", "--yes", *words)


@pytest.fixture
def fix(cli: Here, place: Path, own_node: str, namespace: str, bus: StandInManager) -> Fix:
    bus.add(UNIT)
    return Fix(cli, place, own_node, namespace)


def last_resort(document: dict[str, Any]) -> dict[str, str]:
    return {step["id"].partition(":")[0]: step["state"] for step in document["steps"] if step["part"] == "last-resort"}


def spec(plane: ControlPlane, node: str) -> dict[str, Any]:
    found: dict[str, Any] = plane.ask(f"/api/v1/nodes/{node}")["spec"]
    return found


def names(plane: ControlPlane, path: str) -> set[str]:
    return {one["metadata"]["name"] for one in plane.items(path)}


def test_the_plan_lists_the_pods_and_changes_nothing(
    plane: ControlPlane, own_node: str, fix: Fix, rights: dict[str, Path], jobs: str
) -> None:
    found = steps(fix(rights["remediation"], "--drain").document)
    drain = found[f"node.drain:{own_node}"]
    assert {line.split()[0] for line in drain["touches"]} == {"evict", "keep", "refused"}
    assert drain["command"] == f"kubectl drain {own_node} --ignore-daemonsets"
    assert drain["applicable"]
    assert "unschedulable" not in spec(plane, own_node)
    assert len(names(plane, jobs)) == 3


def test_it_is_drained_rebooted_and_taken_back_with_the_remediation_account(
    plane: ControlPlane, own_node: str, namespace: str, fix: Fix, rights: dict[str, Path], jobs: str, shutdown: Path,
    bus: StandInManager, ended: None,
) -> None:  # fmt: skip
    config = rights["remediation"]
    refused = fix(config, "--reboot", "--apply", "--yes")
    assert refused.code == 1
    assert last_resort(refused.document) == {
        "node.cordon": "applied", "node.drain": "failed", "node.reboot": "planned",
    }  # fmt: skip
    assert names(plane, jobs) == {"web", "train", "exporter"}, "without consent nothing goes"
    done = fix(config, "--reboot", "--may-lose", "local-data", "--apply", "--yes")
    assert set(last_resort(done.document).values()) == {"applied"}, done.document["steps"]
    assert done.code == 3
    assert names(plane, jobs) == {"exporter"}
    assert spec(plane, own_node)["unschedulable"]
    assert shutdown.read_text().startswith("-r +1")
    lease = plane.ask(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/zombiescope-maintenance-0")
    assert lease["spec"]["holderIdentity"] == own_node
    back = fix.undo("--drain")
    assert {one["state"] for one in back.document["steps"]} == {"undone"}
    assert shutdown.read_text().splitlines()[1:] == ["-c"]
    assert "unschedulable" not in spec(plane, own_node)
    lease = plane.ask(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/zombiescope-maintenance-0")
    assert not lease["spec"].get("holderIdentity")
    assert not bus.unit(UNIT).is_running, "what ended the cause stays"


def test_an_empty_node_takes_its_permit_before_it_goes_down(
    plane: ControlPlane, own_node: str, namespace: str, fix: Fix, rights: dict[str, Path], shutdown: Path
) -> None:
    done = fix(rights["remediation"], "--reboot", "--apply", "--yes")
    assert set(last_resort(done.document).values()) == {"applied"}, done.document["steps"]
    fix.undo()


def test_a_second_node_waits_until_the_first_is_back(
    plane: ControlPlane, own_node: str, namespace: str, fix: Fix, rights: dict[str, Path], shutdown: Path
) -> None:
    now = {"holderIdentity": "gpu-1", "leaseDurationSeconds": 3600, "renewTime": "2199-01-01T00:00:00.000001Z"}
    about = {"name": "zombiescope-maintenance-0", "namespace": namespace}
    plane.create(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", {"metadata": about, "spec": now})
    done = fix(rights["remediation"], "--reboot", "--apply", "--yes")
    assert done.code == 1
    found = steps(done.document)
    assert "gpu-1" in found[f"node.drain:{own_node}"]["why"]
    assert found["node.reboot"]["state"] == "planned"
    assert not shutdown.exists()
    assert fix(rights["remediation"], "--reboot", "--nodes-at-once", "2", "--apply", "--yes").code == 3


def test_the_agents_account_may_not(
    plane: ControlPlane, own_node: str, fix: Fix, rights: dict[str, Path], jobs: str
) -> None:
    done = fix(rights["agent"], "--drain", "--apply", "--yes")
    assert done.code == 1
    assert "remediation.enabled" in steps(done.document)[f"node.cordon:{own_node}"]["why"]
    assert "unschedulable" not in spec(plane, own_node)


def test_a_server_that_goes_away_between_two_steps_is_finished_by_a_second_run(
    plane: ControlPlane,
    own_node: str,
    fix: Fix,
    rights: dict[str, Path],
    shutdown: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from zombiescope.fix import apply

    config = rights["remediation"]

    def away(where: str, step: str) -> None:
        if (where, step) == ("applied", f"node.cordon:{own_node}"):
            plane.stop_server()

    monkeypatch.setattr(apply, "STOP_POINTS", [away])
    try:
        done = fix(config, "--reboot", "--apply", "--yes")
    finally:
        plane.start_server()
    assert done.code == 1
    assert last_resort(done.document) == {
        "node.cordon": "applied", "node.drain": "failed", "node.reboot": "planned",
    }  # fmt: skip
    monkeypatch.setattr(apply, "STOP_POINTS", [])
    again = fix(config, "--reboot", "--apply", "--yes")
    assert set(last_resort(again.document).values()) == {"applied"}, again.document["steps"]
    assert {one["state"] for one in fix.undo("--drain").document["steps"]} == {"undone"}
    assert "unschedulable" not in spec(plane, own_node)
