"""Which cgroups are a container runtime's to make, and in which a container's name is only somebody's claim.

A container's id is no secret, and a cgroup may be called anything: whoever may write a cgroup directory can make
`docker-<id of another container>.scope` in it. Root and the runtimes make theirs in places that nobody else may write:
the hierarchy's root, slices, and the services of the runtimes themselves. A name anywhere else identifies nothing.
"""

from __future__ import annotations

from functools import lru_cache

from zombiescope.kernel.cgroup_path import containers_in, owner

RUNTIME_UNITS = frozenset(
    {
        "containerd.service", "docker.service", "docker.socket", "crio.service", "cri-o.service",
        "podman.service", "podman.socket", "kubelet.service", "k3s.service", "k3s-agent.service", "rke2-agent.service",
        "rke2-server.service", "microk8s.service", "snap.microk8s.daemon-containerd.service", "cri-docker.service",
        "cri-docker.socket", "lxd.service", "incus.service", "snap.docker.dockerd.service",
    }
)  # fmt: skip
"""Units of systemd that run container runtimes, and kubelet."""

USERS = "/user.slice/"
"""Users have subtrees below it that they may write."""


@lru_cache(maxsize=4096)
def is_claimed(path: str, node: str = "") -> bool:
    """Whether the container that a cgroup's path names is only claimed by that name: it lies in a user's slice, in a
    unit that is not a runtime's, or in another container. `node`: the cgroup that the node itself runs in, where that
    is a container (kind, a node in LXC)."""
    inside = path.removeprefix(node) if node and path.startswith(f"{node}/") else path
    named = containers_in(inside)
    if inside.startswith(USERS) or len(named) > 1:
        return True
    unit = owner(inside).unit
    return bool(named) and unit is not None and unit not in RUNTIME_UNITS and not named[0][0].endswith(f"/{unit}")
