"""Processes that only carry out what others ask for, and are therefore never the culprit.

pid 1, container runtimes, kubelet and the daemons of batch systems make cgroups, processes, namespaces and mounts for
others; the culprit asked for them: a pod, a restart policy, a script that runs `docker run`, a job. And no plan touches
them: disabling containerd or slurmd takes the runtime away from every job of the node, also after a reboot.

Every process chooses its own name, so a name alone makes no carrier (docs/design/0085). What counts is the kernel's
word: pid 1, a process in a unit of a runtime, or one outside of all services and containers that has the name of a
runtime, runs as root, and was started from a program of such a name.
"""

from __future__ import annotations

import re
from typing import Protocol

from zombiescope.node.containers.runtimes import RUNTIME_UNITS

BATCH = {
    "slurmd": "Slurm", "slurmstepd": "Slurm", "pbs_mom": "PBS", "nomad": "Nomad", "condor_master": "HTCondor",
    "condor_startd": "HTCondor", "condor_starter": "HTCondor", "condor_procd": "HTCondor", "sge_execd": "Grid Engine",
    "sge_shepherd": "Grid Engine", "sbatchd": "LSF", "raylet": "Ray",
}  # fmt: skip
"""Daemons that start the jobs of a cluster, as the kernel has their names -> the batch system."""
CARRIERS = frozenset(
    {
        "systemd", "init", "systemd-executo", "(sd-executor)", "runc", "runc:[0:PARENT]", "runc:[1:CHILD]",
        "runc:[2:INIT]", "crun", "youki", "runsc", "kata-runtime", "containerd", "dockerd", "docker-proxy",
        "docker-init", "tini", "crio", "conmon", "conmonrs", "podman", "kubelet", "buildkitd", "lxc-start", "lxd",
        "incusd", "starter", "starter-suid", *BATCH,
    }
)  # fmt: skip
"""Names of programs, as the kernel has them: at most MOST_OF_COMM characters."""
_CLONED = ("/memfd:runc_cloned", "/proc/self/exe")
"""runc runs from a copy of itself in memory, so that no container can overwrite it."""
MOST_OF_COMM = 15
_SHIM = re.compile(r"containerd-shim|docker-containe|shim-runc|conmon")

CARRIER_UNITS = RUNTIME_UNITS | {
    "init.scope", "slurmd.service", "slurmstepd.scope", "pbs.service", "pbs_mom.service", "nomad.service",
    "condor.service", "sge_execd.service", "sgeexecd.service", "gridengine-exec.service", "lsfd.service",
}  # fmt: skip

CLIENTS = frozenset(
    {
        "docker", "nerdctl", "ctr", "crictl", "systemd-run", "podman-remote", "docker-compose", "apptainer",
        "singularity", "enroot",
    }
)  # fmt: skip
"""They ask a runtime on behalf of whoever ran them, and say so by their parent."""

_PER_USER_MANAGER = re.compile(r"user@\d+\.service$")
_CONTAINER_SCOPE = re.compile(r"(?:docker|cri-containerd|crio|libpod|nerdctl|machine|lxc)[-.].*\.scope$")
_TRANSIENT = re.compile(r"(?:(?:session|run)-(?:\*|[a-z]?\d|r[0-9a-f])|\*).*\.(?:scope|service)$")
_SHARED_SLICE = re.compile(r"(?:-|system|user|machine|init|docker|nomad|share|reserve|kubepods[^/]*)\.slice$")


class Process(Protocol):
    """What a recording says of a process: its own word (comm), and the kernel's (all others)."""

    @property
    def comm(self) -> str | None: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def unit(self) -> str | None: ...
    @property
    def container(self) -> str | None: ...
    @property
    def genuine(self) -> bool | None: ...


def is_carrier(who: Process) -> bool:
    """Whether a process makes things for others."""
    if who.pid == 1 or who.unit in CARRIER_UNITS:
        return True
    if who.container is not None or not has_carriers_name(who.comm):
        return False
    if who.unit is not None and not stands_for_nobody(who.unit):
        return False  # a service that runs its containers itself answers for them
    return who.genuine if who.genuine is not None else who.unit is None


def is_genuine(uid: int | None, exe: str | None) -> bool | None:
    """Whether a process may be the runtime that its name says: one of root's, started from a runtime's program. None
    where its user was not recorded."""
    if uid is None:
        return None
    program = "" if exe is None else exe.rpartition("/")[2]
    return uid == 0 and (exe is None or has_carriers_name(program[:MOST_OF_COMM]) or exe.startswith(_CLONED))


def has_carriers_name(comm: str | None) -> bool:
    """Whether it is called like one. Everybody may be."""
    if comm is None:
        return False
    return comm in CARRIERS or comm in CLIENTS or comm.startswith("runc:[") or _SHIM.match(comm) is not None


def carries_out_for_its_parent(comm: str | None) -> bool:
    """A client of a runtime works for the process that ran it; podman is client and runtime in one."""
    return comm in CLIENTS or comm == "podman"


def is_carrier_unit(unit: str | None) -> bool:
    return unit is not None and (unit in CARRIER_UNITS or _PER_USER_MANAGER.match(unit) is not None)


def stands_for_nobody(unit: str) -> bool:
    """A unit in a cgroup's path that says where something ran and not whose it is: a runtime, the scope of one
    container, a login session, a transient unit without a name, a slice that everybody shares."""
    scope = _CONTAINER_SCOPE.match(unit) or _SHARED_SLICE.match(unit) or _TRANSIENT.match(unit)
    return is_carrier_unit(unit) or scope is not None
