"""Who manages a container, as its labels say: Compose, Swarm, Nomad, ECS, a unit that Podman generated.

Labels are text that the one who created the container chose, so they name a manager and prove nothing. Pure text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zombiescope.node.containers import files

_MANAGERS = (
    ("PODMAN_SYSTEMD_UNIT", "unit"),
    ("com.docker.compose.project", "compose project"),
    ("io.podman.compose.project", "compose project"),
    ("com.docker.stack.namespace", "swarm stack"),
    ("com.docker.swarm.service.name", "swarm service"),
    ("com.hashicorp.nomad.job_name", "nomad job"),
    ("com.hashicorp.nomad.alloc_id", "nomad allocation"),
    ("com.amazonaws.ecs.task-definition-family", "ecs task"),
    ("com.amazonaws.ecs.cluster", "ecs cluster"),
    ("io.rancher.container.system", "rancher"),
    ("com.gitlab.gitlab-runner.job.id", "gitlab-runner job"),
    ("org.testcontainers.session-id", "testcontainers session"),
    ("io.kubernetes.pod.name", "kubelet, pod"),
)
"""Label -> what its value names. The first that is there is taken."""


def manager(labels: Mapping[str, Any]) -> str | None:
    """ "compose project web"; None where no label is known."""
    for label, what in _MANAGERS:
        name = files.text(labels.get(label), 128)
        if name:
            return f"{what} {name}"
    return None
