"""kubelet's directories: a pod's name from its uid, and how often a container was started again."""

from __future__ import annotations

from pathlib import Path

import pytest

from zombiescope.node.containers import identity, pods
from zombiescope.node.containers.pods import Pod

ID = "5e1f" * 16
UID = "0a1b2c3d-0001-4002-8003-0123456789ab"


@pytest.mark.parametrize(
    ("name", "pod"),
    [
        (f"team-a_agent-7c9f_{UID}", Pod("team-a", "agent-7c9f", UID)),
        ("kube-system_etcd-node1_0123456789abcdef0123456789abcdef",
         Pod("kube-system", "etcd-node1", "0123456789abcdef0123456789abcdef")),
        ("team-a_agent", None),
        (f"a_b_c_{UID}", None),
        (f"_x_{UID}", None),
        (f"a_.._{UID}", None),
        (f"a\x1b_b_{UID}", None),
    ],
)  # fmt: skip
def test_the_directorys_name(name: str, pod: Pod | None) -> None:
    assert pods.parse(name) == pod


def test_a_pod_and_its_restarts_are_found_by_its_uid(tmp_path: Path) -> None:
    logs = tmp_path / "var/log/pods" / f"team-a_agent-7c9f_{UID}" / "agent"
    logs.mkdir(parents=True)
    for name in ("0.log", "12.log", "12.log.20261116", "x.log", "9" * 30 + ".log"):
        (logs / name).touch()
    found = pods.of_uid(UID, str(tmp_path))
    assert found == Pod("team-a", "agent-7c9f", UID)
    assert pods.restarts(found, "agent", str(tmp_path)) == 12
    assert pods.restarts(found, "../agent", str(tmp_path)) is None
    assert pods.of_uid("another", str(tmp_path)) is None
    # AND a container whose bundle is out of sight has its pod all the same
    known = identity.describe(ID, runtime="crio", pod_uid=UID, pid=1, root=str(tmp_path))
    assert (known.namespace, known.pod, known.pod_uid) == ("team-a", "agent-7c9f", UID)
