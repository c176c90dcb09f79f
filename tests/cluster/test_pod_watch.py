"""The pods of a node, as a real API server tells of them: through restarts of the server, cuts and old versions."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.api_server import ControlPlane, pod, running
from tests.helpers.cutting_proxy import cutting_proxy
from tests.helpers.pod_follower import following, until

pytestmark = pytest.mark.cluster
FINISHED = {"exitCode": 137, "reason": "OOMKilled", "startedAt": None, "finishedAt": None, "containerID": "x"}


def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def test_a_pod_comes_restarts_and_goes(plane: ControlPlane, own_node: str, namespace: str) -> None:
    with following(own_node, plane.admin()) as follower:
        until(lambda: follower.watch.synced_at)
        plane.create(pods(namespace), pod("trainer", own_node))
        plane.create(pods(namespace), pod("elsewhere", "another-node"))
        until(lambda: follower.names == {"trainer"})
        plane.status(f"{pods(namespace)}/trainer", running())
        plane.status(f"{pods(namespace)}/trainer", running(restarts=3, lastState={"terminated": FINISHED}))
        until(lambda: len(follower.events) == 2)
        assert [event.kind for event in follower.events] == ["pod_oom_killed", "pod_restarted"]
        assert follower.events[1].fields["times"] == 3
        plane.delete(f"{pods(namespace)}/trainer")
        until(lambda: follower.gone == ["trainer"])


def test_a_deployments_pod_is_the_deployments(plane: ControlPlane, own_node: str, namespace: str) -> None:
    spec = pod("x", own_node)["spec"]
    del spec["terminationGracePeriodSeconds"]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    selector = {"matchLabels": {"app": "web"}}
    plane.create(
        f"/apis/apps/v1/namespaces/{namespace}/deployments",
        {"metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": selector, "template": template}},
    )
    with following(own_node, plane.admin()) as follower:
        until(lambda: len(follower.names) == 2)
        assert {found.owner_path for found in follower.watch.pods.values()} == {"Deployment/web"}


def test_what_happens_while_the_server_is_away_is_known_when_it_is_back(
    plane: ControlPlane, own_node: str, namespace: str
) -> None:
    for name in ("stays", "goes"):
        plane.create(pods(namespace), pod(name, own_node))
    with cutting_proxy(plane.port) as proxy, following(own_node, plane.admin(proxy.url)) as follower:
        until(lambda: follower.names == {"stays", "goes"})
        proxy.refusing = True
        proxy.cut()
        until(lambda: len(follower.waits) >= 4)
        plane.status(f"{pods(namespace)}/stays", running(restarts=7, lastState={"terminated": FINISHED}))
        plane.delete(f"{pods(namespace)}/goes")
        plane.create(pods(namespace), pod("new", own_node))
        proxy.refusing = False
        until(lambda: follower.names == {"stays", "new"})
        assert [event.fields["restarts"] for event in follower.events if event.kind == "pod_restarted"] == [7]
        assert follower.gone == ["goes"]
        assert len(follower.lines) == 2, "said once when it goes, once when it is back"
        assert "answers again" in follower.lines[1]
        assert follower.waits[3] > follower.waits[0]


def test_a_restart_of_the_server_is_survived(plane: ControlPlane, own_node: str, namespace: str) -> None:
    plane.create(pods(namespace), pod("before", own_node))
    with following(own_node, plane.admin()) as follower:
        until(lambda: follower.names == {"before"})
        plane.stop_server(at_once=True)
        plane.start_server()
        plane.create(pods(namespace), pod("after", own_node))
        until(lambda: follower.names == {"before", "after"})
        assert follower.events == []


def test_a_new_token_is_read_when_the_old_one_is_refused(plane: ControlPlane, own_node: str, namespace: str) -> None:
    plane.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "reader"}})
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
    plane.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": namespace}, "rules": rules})
    plane.create(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {
            "metadata": {"name": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": namespace}],
        },
    )
    config = plane.account(namespace, "reader")
    token = config.parent / "token"
    good = token.read_text()
    token.write_text("eyJhbGciOiJSUzI1NiJ9.e30.AAAA")
    with following(own_node, config) as follower:
        until(lambda: follower.lines)
        assert "401" in follower.lines[0]
        token.write_text(good)
        until(lambda: follower.watch.synced_at)


def test_without_the_right_one_line_says_what_grants_it(plane: ControlPlane, own_node: str, namespace: str) -> None:
    plane.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "nobody"}})
    with following(own_node, plane.account(namespace, "nobody")) as follower:
        until(lambda: len(follower.waits) >= 2)
    assert len(follower.lines) == 1
    assert "403" in follower.lines[0]
    assert "ClusterRole of the chart" in follower.lines[0]
    assert min(follower.waits) >= 30


def test_no_server_at_all_is_one_line(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(
        '{"current-context":"c","clusters":[{"name":"k","cluster":{"server":"https://127.0.0.1:9"}}],'
        '"users":[{"name":"u","user":{"token":"t"}}],"contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}]}'
    )
    with following("n", config) as follower:
        until(lambda: len(follower.waits) >= 3)
    assert len(follower.lines) == 1
