"""What the chart grants, asked of a real API server: that, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.helpers import chart
from tests.helpers.api_server import ControlPlane

pytestmark = pytest.mark.cluster
RBAC = "/apis/rbac.authorization.k8s.io/v1"
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
RESOURCES = (
    ("", "pods", ""), ("", "pods", "eviction"), ("", "pods", "exec"), ("", "pods", "status"), ("", "pods", "log"),
    ("", "nodes", ""), ("", "nodes", "status"), ("", "nodes", "proxy"), ("", "events", ""), ("", "secrets", ""),
    ("", "configmaps", ""), ("", "serviceaccounts", "token"), ("apps", "deployments", ""), ("apps", "daemonsets", ""),
    ("coordination.k8s.io", "leases", ""), ("rbac.authorization.k8s.io", "clusterroles", ""),
    ("policy", "poddisruptionbudgets", ""), ("batch", "jobs", ""), ("ray.io", "rayjobs", ""),
    ("ray.io", "rayclusters", ""), ("ray.io", "rayservices", ""),
)  # fmt: skip


@pytest.fixture(scope="module")
def space(plane: ControlPlane) -> str:
    plane.create("/api/v1/namespaces", {"metadata": {"name": "granted"}})
    return "granted"


def install(plane: ControlPlane, space: str, *settings: str) -> list[str]:
    """The accounts and rights of the chart; the paths of what was made."""
    paths = {
        "ServiceAccount": f"/api/v1/namespaces/{space}/serviceaccounts",
        "ClusterRole": f"{RBAC}/clusterroles",
        "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
        "Role": f"{RBAC}/namespaces/{space}/roles",
        "RoleBinding": f"{RBAC}/namespaces/{space}/rolebindings",
    }
    made = []
    for one in chart.objects(*settings, namespace=space):
        if one["kind"] in paths:
            plane.create(paths[one["kind"]], one)
            made.append(f"{paths[one['kind']]}/{one['metadata']['name']}")
    return made


@pytest.fixture
def granted(request: pytest.FixtureRequest, plane: ControlPlane, space: str) -> Iterator[None]:
    made = install(plane, space, *request.param)
    yield
    for path in made:
        plane.delete(path)


def allowed(plane: ControlPlane, space: str, account: str, namespace: str) -> set[str]:
    """Every verb on every resource that the account may, as the server answers."""
    found = set()
    for group, resource, sub in RESOURCES:
        for verb in VERBS:
            asked = {"group": group, "resource": resource, "subresource": sub, "verb": verb, "namespace": namespace}
            review = {
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {"user": f"system:serviceaccount:{space}:{account}", "resourceAttributes": asked},
            }  # fmt: skip
            if plane.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]:
                found.add(f"{verb} {resource}" + (f"/{sub}" if sub else ""))
    return found


RAY = {"list rayjobs", "watch rayjobs", "list rayclusters", "watch rayclusters"}
READS = {"list pods", "watch pods", "get nodes", "create events", "patch events", *RAY}


@pytest.mark.parametrize("granted", [()], indirect=True)
def test_the_agent_may_read_pods_and_tell_and_nothing_else(plane: ControlPlane, space: str, granted: None) -> None:
    assert allowed(plane, space, "zombiescope", "kube-system") == READS
    assert allowed(plane, space, "zombiescope-remediation", space) == set()


@pytest.mark.parametrize("granted", [('kubernetes={"conditions":true}',)], indirect=True)
def test_conditions_are_one_right_more(plane: ControlPlane, space: str, granted: None) -> None:
    assert allowed(plane, space, "zombiescope", space) == READS | {"patch nodes/status"}


@pytest.mark.parametrize("granted", [('kubernetes={"events":false}',)], indirect=True)
def test_without_events_it_only_reads_pods(plane: ControlPlane, space: str, granted: None) -> None:
    assert allowed(plane, space, "zombiescope", space) == {"list pods", "watch pods", *RAY}


@pytest.mark.parametrize("granted", [('kubernetes={"ray":false}',)], indirect=True)
def test_without_ray_it_does_not_read_its_objects(plane: ControlPlane, space: str, granted: None) -> None:
    assert allowed(plane, space, "zombiescope", space) == READS - RAY


@pytest.mark.parametrize("granted", [('remediation={"enabled":true}',)], indirect=True)
def test_remediation_is_an_account_of_its_own(plane: ControlPlane, space: str, granted: None) -> None:
    everywhere = {
        "get nodes", "patch nodes", "get pods", "list pods", "create pods/eviction", "create events", "patch events",
    }  # fmt: skip
    leases = {"get leases", "create leases", "update leases"}
    assert allowed(plane, space, "zombiescope-remediation", "kube-system") == everywhere
    assert allowed(plane, space, "zombiescope-remediation", space) == everywhere | leases
    assert allowed(plane, space, "zombiescope", space) == READS, "the agent's own rights do not grow"
