"""What a unit or a cgroup holds that others need, read from this machine now: facts that protect it, whatever its name.

    listens on a node's own ports   ssh, etcd, the API server, kubelet: /proc/net/tcp and tcp6
    speaks BGP                      a connection of its own on port 179
    serves mounts in use            /dev/fuse is open, it answers for an autofs mount, or it is the daemon of a mounted
                                    file system (mmfsd of gpfs)
    computes on an accelerator      /dev/nvidia-uvm (CUDA; a monitor has only /dev/nvidiaN), /dev/kfd, /dev/accel, ...
    holds the jobs of others        processes of users below a daemon of root

Bounded: MOST_PROCESSES of a cgroup and MOST_FDS of each. What could not be looked at protects nothing: these facts are
added to the list of names (audit/protected.py) and replace none of it. Cost: a readlink for each descriptor.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from zombiescope.base.text import printable
from zombiescope.kernel.cgroup import directory, hierarchies
from zombiescope.kernel.procfile import at, names_in, read_file

MOST_PROCESSES = 512
MOST_FDS = 4_096
MOST_DIRECTORIES = 2_048
_PORTS = {
    22: "others reach the node through it: it listens on port 22 (ssh)",
    179: "the network depends on it: it speaks BGP (port 179)",
    2379: "the cluster depends on it: it listens on port 2379 (etcd)",
    2380: "the cluster depends on it: it listens on port 2380 (etcd)",
    6443: "the cluster depends on it: it listens on port 6443 (the API server)",
    10250: "the node's pods depend on it: it listens on port 10250 (kubelet)",
}
_DAEMONS = {
    "gpfs": ("mmfsd",), "wekafs": ("wekanode", "weka-agent"), "beegfs": ("beegfs-client", "beegfs-helperd"),
    "afs": ("afsd",), "orangefs": ("pvfs2-client",), "ocfs2": ("o2hbmonitor",),
}  # fmt: skip
"""Type of a mounted file system -> the daemons without which it hangs, as the kernel has their names."""
_LISTENING, _ESTABLISHED = "0A", "01"
_BGP = 179
_COMPUTES = ("/dev/nvidia-uvm", "/dev/kfd")
_COMPUTES_BELOW = ("/dev/accel/", "/dev/habanalabs/", "/dev/neuron", "/dev/hl")


@dataclass(frozen=True, slots=True)
class _Descriptors:
    sockets: frozenset[int]
    files: frozenset[str]


def why_needed(cgroup: str, root: str = "/") -> str | None:
    """Why what runs in a cgroup, and below it, is only stopped or frozen by name; None: nothing was found."""
    pids = list(processes(cgroup, root))
    return why_processes_are_needed(pids, root) or _others_jobs(pids, root)


def why_processes_are_needed(pids: Iterable[int], root: str = "/") -> str | None:
    ports, mounts = _ports(root), _Mounts(root)
    for pid in pids:
        if (point := mounts.held_by(pid, root)) is not None:
            return f"disks and file systems depend on it: pid {pid} serves the mount {point}"
        held = _descriptors(pid, root)
        port = next((ports[inode] for inode in held.sockets if inode in ports), None)
        if port is not None:
            return _PORTS[port]
        if "/dev/fuse" in held.files:
            return f"disks and file systems depend on it: pid {pid} serves a FUSE file system"
        if device := next(filter(_is_accelerator, held.files), None):
            return f"pid {pid} computes on an accelerator: it has {device} open"
    return None


class _Mounts:
    """Who serves what is mounted, as far as the table of mounts says it."""

    def __init__(self, root: str) -> None:
        self._groups: dict[int, str] = {}
        self._daemons: dict[str, str] = {}
        for line in (read_file(at(root, "proc/self/mountinfo")) or b"").decode("utf-8", "replace").splitlines():
            before, _, after = line.partition(" - ")
            fields, about = before.split(), after.split(" ")
            if len(fields) < 5 or len(about) < 3:
                continue
            point = printable(fields[4])
            group = re.search(r"\bpgrp=(\d{1,10})\b", about[2]) if about[0] == "autofs" else None
            if group is not None:
                self._groups[int(group[1])] = point
            for daemon in _DAEMONS.get(about[0].partition(".")[0], ()):
                self._daemons[daemon] = point

    def held_by(self, pid: int, root: str) -> str | None:
        data = read_file(at(root, f"proc/{pid}/stat")) if self._groups or self._daemons else None
        if data is None:
            return None
        comm = data[data.find(b"(") + 1 : data.rfind(b")")].decode("utf-8", "replace")
        fields = data.rpartition(b")")[2].split()
        group = int(fields[2]) if len(fields) > 2 and fields[2].isdigit() else 0
        return self._groups.get(group) or self._daemons.get(comm)


def uses_accelerator(pids: Iterable[int], root: str = "/") -> int | None:
    """The first of these processes that has an accelerator open."""
    return next((pid for pid in pids if any(map(_is_accelerator, _descriptors(pid, root).files))), None)


def descendants(pid: int, root: str = "/") -> list[int]:
    """A process and all that it started and that still have it above them, at most MOST_PROCESSES."""
    below: dict[int, list[int]] = {}
    for name in names_in(at(root, "proc")) or ():
        parent = _parent(name, root) if name.isdecimal() else None
        if parent is not None:
            below.setdefault(parent, []).append(int(name))
    found: list[int] = []
    pending = [pid]
    while pending and len(found) < MOST_PROCESSES:
        one = pending.pop()
        found.append(one)
        pending += below.pop(one, [])
    return found


def processes(cgroup: str, root: str = "/") -> Iterator[int]:
    """Those in a cgroup and below it, each once."""
    seen: set[int] = set()
    place = _place(cgroup, root)
    for number, (here, _, names) in enumerate(os.walk(place) if place else ()):
        if number >= MOST_DIRECTORIES or len(seen) >= MOST_PROCESSES:
            return
        if "cgroup.procs" not in names:
            continue
        for word in (read_file(f"{here}/cgroup.procs") or b"").split():
            if word.isdigit() and (pid := int(word)) not in seen:
                seen.add(pid)
                yield pid


def _place(cgroup: str, root: str) -> str | None:
    """The directory of a cgroup in the hierarchy in which systemd keeps its units, or another that has it."""
    if not cgroup.startswith("/") or cgroup == "/" or ".." in cgroup.split("/"):
        return None
    known = hierarchies(root)
    named = [one for one in known if "name=systemd" in one.controllers or one.version == 2]
    places = (directory(one, cgroup) for one in [*named, *known])
    return next((place for place in places if place is not None), None)


def _parent(pid: str, root: str) -> int | None:
    data = read_file(at(root, f"proc/{pid}/stat")) or b""
    fields = data.rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else None


def _descriptors(pid: int, root: str) -> _Descriptors:
    sockets: set[int] = set()
    files: set[str] = set()
    place = at(root, f"proc/{pid}/fd")
    for name in (names_in(place) or [])[:MOST_FDS]:
        try:
            target = os.readlink(f"{place}/{name}")  # noqa: PTH115  links of procfs are no paths
        except OSError:
            continue
        if target.startswith("socket:[") and target[8:-1].isdecimal():
            sockets.add(int(target[8:-1]))
        elif target.startswith("/dev/"):
            files.add(target)
    return _Descriptors(frozenset(sockets), frozenset(files))


def _is_accelerator(file: str) -> bool:
    return file in _COMPUTES or file.startswith(_COMPUTES_BELOW)


def _ports(root: str) -> dict[int, int]:
    """Inode -> port, of sockets that listen on a port that a node needs, and of connections of BGP."""
    found: dict[int, int] = {}
    for name in ("tcp", "tcp6"):
        for line in (read_file(at(root, f"proc/net/{name}")) or b"").decode("ascii", "replace").splitlines()[1:]:
            fields = line.split()
            if len(fields) < 10 or not fields[9].isdecimal():
                continue
            state = fields[3]
            ports = [_port(fields[1])] if state == _LISTENING else []
            if state == _ESTABLISHED and _BGP in (_port(fields[1]), _port(fields[2])):
                ports = [_BGP]
            for port in ports:
                if port in _PORTS:
                    found[int(fields[9])] = port
    return found


def _port(address: str) -> int | None:
    try:
        return int(address.rpartition(":")[2], 16)
    except ValueError:
        return None


def _others_jobs(pids: list[int], root: str) -> str | None:
    """Processes of users in the cgroup of a daemon that root runs: it is a batch system's, or a login's."""
    owners = {pid: uid for pid in pids if (uid := _uid(pid, root)) is not None}
    users = {uid for uid in owners.values() if uid >= _FIRST_USER and uid < _NOBODY}
    if 0 in owners.values() and users:
        listed = ", ".join(str(uid) for uid in sorted(users)[:3])
        return f"it runs the containers and jobs of others: processes of uid {listed} are in its cgroup"
    return None


_FIRST_USER, _NOBODY = 1000, 65_534


def _uid(pid: int, root: str) -> int | None:
    try:
        return os.stat(at(root, f"proc/{pid}")).st_uid  # noqa: PTH116  a directory of procfs
    except OSError:
        return None
