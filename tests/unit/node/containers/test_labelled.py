"""Who manages a container, by the labels that Compose, Swarm, Nomad, ECS, kubelet and Podman's units set."""

from __future__ import annotations

import pytest

from zombiescope.node.containers.labelled import manager


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        ({"com.docker.compose.project": "web", "com.docker.compose.service": "db"}, "compose project web"),
        ({"io.podman.compose.project": "web"}, "compose project web"),
        ({"com.hashicorp.nomad.alloc_id": "0b1c", "com.hashicorp.nomad.job_name": "batch"}, "nomad job batch"),
        ({"com.hashicorp.nomad.alloc_id": "0b1c"}, "nomad allocation 0b1c"),
        ({"com.amazonaws.ecs.task-definition-family": "trainer"}, "ecs task trainer"),
        ({"com.docker.stack.namespace": "prod"}, "swarm stack prod"),
        ({"PODMAN_SYSTEMD_UNIT": "agent.service"}, "unit agent.service"),
        ({"io.kubernetes.pod.name": "leaky-0"}, "kubelet, pod leaky-0"),
        ({"maintainer": "somebody"}, None),
        ({"com.docker.compose.project": ""}, None),
        ({"com.docker.compose.project": 7}, None),
        ({}, None),
    ],
)
def test_a_label_names_its_manager(labels: dict[str, object], named: str | None) -> None:
    assert manager(labels) == named
