"""Which cgroups are a container runtime's to make, and in which a container's name is only somebody's claim.

A container's id is no secret, and a cgroup may be called anything: whoever may write a cgroup directory can make
`docker-<id of another container>.scope` in it. Root and the runtimes make theirs in places that nobody else may write:
the hierarchy's root, slices, and the services of the runtimes themselves. A name anywhere else identifies nothing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from zombiescope.kernel.cgroup_path import Owner, containers_in, owner

RUNTIME_UNITS = frozenset(
    {
        "containerd.service", "docker.service", "docker.socket", "crio.service", "cri-o.service",
        "podman.service", "podman.socket", "kubelet.service", "k3s.service", "k3s-agent.service", "rke2-agent.service",
        "rke2-server.service", "microk8s.service", "snap.microk8s.daemon-containerd.service", "cri-docker.service",
        "cri-docker.socket", "lxd.service", "incus.service", "snap.docker.dockerd.service",
        "slurmstepd.scope", "slurmd.service",
    }
)  # fmt: skip
"""Units of systemd that run container runtimes, kubelet, and the jobs of Slurm."""

USERS = "/user.slice/"
"""Users have subtrees below it that they may write."""


@lru_cache(maxsize=4096)
def is_claimed(path: str, node: str = "") -> bool:
    """Whether the container that a cgroup's path names is only claimed by that name: it lies in a user's slice, in a
    unit that is not a runtime's, or in another container. `node`: the cgroup that the node itself runs in, where that
    is a container (kind, a node in LXC)."""
    inside = _inside(path, node)
    named = containers_in(inside)
    if inside.startswith(USERS) or len(named) > 1:
        return True
    unit = owner(inside).unit
    return bool(named) and unit is not None and unit not in RUNTIME_UNITS and not named[0][0].endswith(f"/{unit}")


@lru_cache(maxsize=4096)
def verified_owner(path: str, node: str = "") -> Owner:
    """Whose a cgroup is, without what a name in it only claims: the outermost container, and neither container nor pod
    in what a user or a service may write. (A node that is itself a container, seen from outside, is that container.)"""
    inside = _inside(path, node)
    who = owner(inside)
    if who.container is None and who.pod_uid is None:
        return who
    named = containers_in(inside)
    if len(named) > 1 and not inside.startswith(USERS):
        return verified_owner(named[0][0])
    is_service = who.unit is not None and who.unit not in RUNTIME_UNITS
    if is_claimed(path, node) or (not named and (is_service or inside.startswith(USERS))):
        return replace(who, container=None, pod_uid=None, runtime=None)
    return who


def _inside(path: str, node: str) -> str:
    return path.removeprefix(node) if node and path.startswith(f"{node}/") else path
