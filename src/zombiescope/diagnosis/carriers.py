"""Who only carries out what others ask for, and is therefore never to blame.

pid 1, container runtimes and kubelet make cgroups, processes, namespaces and mounts for others; the culprit is whoever
asked: a pod, a restart policy, a script that runs `docker run`. And no plan touches them: disabling containerd takes
the runtime away from every job of the node, also after a reboot.
"""

from __future__ import annotations

import re

CARRIERS = frozenset(
    {
        "systemd", "init", "systemd-executo", "(sd-executor)", "runc", "runc:[0:PARENT]", "runc:[1:CHILD]",
        "runc:[2:INIT]", "crun", "youki", "runsc", "kata-runtime", "containerd", "dockerd", "docker-proxy",
        "docker-init", "tini", "crio", "conmon", "conmonrs", "podman", "kubelet", "buildkitd", "lxc-start", "lxd",
        "incusd",
    }
)  # fmt: skip
"""Names of programs, as the kernel has them: at most fifteen characters."""
_SHIM = re.compile(r"containerd-shim|docker-containe|shim-runc|conmon")

CARRIER_UNITS = frozenset(
    {
        "init.scope", "containerd.service", "docker.service", "docker.socket", "crio.service", "cri-o.service",
        "podman.service", "podman.socket", "kubelet.service", "k3s.service", "k3s-agent.service", "rke2-agent.service",
        "rke2-server.service", "microk8s.service", "snap.microk8s.daemon-containerd.service", "cri-docker.service",
        "cri-docker.socket", "lxd.service", "incus.service", "snap.docker.dockerd.service",
    }
)  # fmt: skip


CLIENTS = frozenset({"docker", "nerdctl", "ctr", "crictl", "systemd-run", "podman-remote", "docker-compose"})
"""They ask a runtime on behalf of whoever ran them, and say so by their parent."""

_PER_USER_MANAGER = re.compile(r"user@\d+\.service$")
_CONTAINER_SCOPE = re.compile(r"(?:docker|cri-containerd|crio|libpod|nerdctl|machine|lxc)[-.].*\.scope$")
_TRANSIENT = re.compile(r"(?:session|run)-(?:\*|[a-z]?\d|r[0-9a-f]).*\.(?:scope|service)$")
_SHARED_SLICE = re.compile(r"(?:-|system|user|machine|init|docker|kubepods[^/]*)\.slice$")


def carries_out(comm: str | None, pid: int | None = None) -> bool:
    """Whether a process makes things for others."""
    if pid == 1:
        return True
    if comm is None:
        return False
    return comm in CARRIERS or comm in CLIENTS or comm.startswith("runc:[") or _SHIM.match(comm) is not None


def carries_out_for_its_parent(comm: str | None) -> bool:
    """A client of a runtime works for whoever ran it; podman is client and runtime in one."""
    return comm in CLIENTS or comm == "podman"


def is_carrier_unit(unit: str | None) -> bool:
    return unit is not None and (unit in CARRIER_UNITS or _PER_USER_MANAGER.match(unit) is not None)


def stands_for_nobody(unit: str) -> bool:
    """A unit in a cgroup's path that says where something ran and not whose it is: a runtime, the scope of one
    container, a login session, a transient unit without a name, a slice that everybody shares."""
    scope = _CONTAINER_SCOPE.match(unit) or _SHARED_SLICE.match(unit) or _TRANSIENT.match(unit)
    return is_carrier_unit(unit) or scope is not None
