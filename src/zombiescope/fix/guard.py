"""What no plan changes without being told to by name: what others need, and what carries whoever runs this."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from zombiescope.audit.protected import protection
from zombiescope.diagnosis import carriers
from zombiescope.diagnosis.incident import Actor
from zombiescope.diagnosis.plan import untouchable
from zombiescope.fix import holds
from zombiescope.kernel import process
from zombiescope.kernel.cgroup_path import owner
from zombiescope.node.systemd.manager import LoadedUnit

_ANCESTORS_MAX = 64
_NETWORK = ("network-online.target", "network.target", "network-pre.target", "remote-fs.target", "remote-fs-pre.target")
_MOUNTS = (".mount", ".automount")


def protected_unit(unit: str, root: Path = Path("/proc")) -> str | None:
    """Why a unit is only changed with --force-unit; None where it may be."""
    if (why := untouchable(unit)) is not None:
        return why
    return "it carries the session that this runs in" if unit in _own_units(root) else None


def needed_unit(known: LoadedUnit | None) -> str | None:
    """Why a unit of this machine is only changed by name, by what it holds now: see holds.py."""
    if known is None:
        return None
    if target := next((name for name in known.wanted_by if name in _NETWORK), None):
        return f"the network depends on it: {target} wants it"
    if mount := next((name for name in (*known.wanted_by, *known.stops_with) if name.endswith(_MOUNTS)), None):
        return f"disks and file systems depend on it: {mount} needs it"
    return holds.why_needed(known.control_group) if known.control_group else None


def never_frozen(pod: str | None, container: str | None, cgroup: str) -> str | None:
    """Why a container or unit is not frozen, whoever names it: one of a pod misses its probes, is replaced, and on
    cgroup v1 cannot even be killed. None where it may be frozen."""
    of_pod = owner(cgroup).pod_uid is not None or "kubepods" in cgroup
    if pod or of_pod or (container or "").startswith("k8s_"):
        return "it belongs to a pod: kubelet would see its probes fail, and restart it or fail to stop it"
    if carries_us(container) if container else False:
        return "it carries the session that this runs in"
    return None


def unit_of(pid: int) -> str | None:
    """The unit that a process is in now, as its cgroup says: what was recorded of it may be missing, or another's."""
    found = process.read(pid, cmdline=False)
    return owner(found.systemd_cgroup).unit if found is not None and found.systemd_cgroup else None


def is_carrier(pid: int) -> bool:
    """Whether a living process makes things for others: by its user, program and cgroup of now."""
    found = process.read(pid, cmdline=False)
    if found is None:
        return False
    places = [owner(path) for path in (found.systemd_cgroup, *found.cgroups.values()) if path]
    unit = next((one.unit for one in places if one.unit), None)
    container = next((one.container for one in places if one.container), None)
    known = Actor(found.comm, pid, unit, container=container, genuine=carriers.is_genuine(found.uid, found.exe))
    return carriers.is_carrier(known)


def protected_container(container: str) -> str | None:
    """The same for a container's name: one that kubelet would start again, or that carries what others need."""
    if container.startswith("k8s_"):
        return "it is a pod's, and kubelet would start it again"
    return protection(f"{container}.service")


def carries_us(container: str, root: Path = Path("/proc")) -> str | None:
    """Of a container's whole id: whether this runs in it."""
    inside = any(len(container) >= 12 and container in path for path in _own_cgroups(root))
    return "it carries the session that this runs in" if inside else None


def is_our_ancestor(pid: int, root: Path = Path("/proc")) -> bool:
    """Whether a process is this one, or one of those that it comes from."""
    return str(pid) in {str(os.getpid()), *(name for name, _ in _ancestors(root))}


def _own_units(root: Path) -> set[str]:
    return {part for path in _own_cgroups(root) for part in path.split("/") if "." in part}


def _own_cgroups(root: Path) -> set[str]:
    """Of this process and of all that it comes from: stopping any of them may end it."""
    return {line.split(":", 2)[2] for _, text in _ancestors(root) for line in text.splitlines() if line.count(":") > 1}


def _ancestors(root: Path) -> Iterator[tuple[str, str]]:
    """(pid, its cgroups) of this process ("self") and all that it comes from, but for pid 1."""
    pid = "self"
    for _ in range(_ANCESTORS_MAX):
        try:
            yield pid, (root / pid / "cgroup").read_text()
            status = (root / pid / "status").read_text()
        except OSError:
            break
        pid = next((line.split()[1] for line in status.splitlines() if line.startswith("PPid:")), "0")
        if pid in ("0", "1"):
            break
