"""/proc/PID/cgroup with the paths of the node, whatever cgroup namespace this process is in.

A container runtime gives a pod that is not privileged a cgroup namespace of its own on cgroup2. There the kernel prints
every path relative to the pod: "/../../../system.slice/sshd.service". Tracepoints, perf and the directories below a
mount of the whole hierarchy keep the node's paths, so nothing would join.

How many ".." lead to the root is known from the mount of the whole hierarchy (mountinfo prints its root as
"/../../.."), else from process 1, which sits near the root. A path with that many needs nothing else. Shorter ones (the
pod's siblings and the pod itself) need the pod's own path: the directory at that depth whose cgroup.procs lists this
process. It is searched once, below kubepods and the like first, and at most MOST_DIRECTORIES are looked at.

Cost: nothing in the host's namespace; else two small files, and the search once a process. Absence: where neither the
whole hierarchy nor the host's PID namespace is in sight, paths stay as they are, and sees_node_paths() is False.
"""

from __future__ import annotations

import os
from functools import lru_cache

from zombiescope.kernel import cgroup, namespaces
from zombiescope.kernel.procfile import at, read_file

MOST_DIRECTORIES = 20_000
_LIKELY = ("kubepods", "kubelet", "system", "machine", "docker")

Membership = dict[int, tuple[frozenset[str], str]]


def membership(pid: int | str = "self", root: str = "/") -> Membership:
    """Hierarchy number -> (controllers, path on the node)."""
    found = cgroup.parse_membership(read_file(at(root, f"proc/{pid}/cgroup")) or b"")
    if namespaces.in_host_cgroup_namespace(root):
        return found
    return {key: (names, _on_node(path, key, root)) for key, (names, path) in found.items()}


def sees_node_paths(number: int, root: str = "/") -> bool:
    """Whether membership() can name a task's cgroup in this hierarchy as the node does."""
    return namespaces.in_host_cgroup_namespace(root) or _depth(number, root) is not None


@lru_cache(maxsize=8)
def node_root(root: str = "/") -> str:
    """The cgroup that the node's own systemd runs below: "" on a machine; where the node is a container (kind, LXC),
    that container's."""
    found = membership(1, root)
    paths = [path for key, (names, path) in found.items() if key == 0 or "name=systemd" in names]
    deepest = max(paths, key=len, default="/").removesuffix("/init.scope").rstrip("/")
    return "" if ".." in deepest else deepest


def _on_node(path: str, number: int, root: str) -> str:
    depth = _depth(number, root)
    if depth is None:
        return path
    parts = path.split("/")[1:]
    ups = _leading_ups(parts)
    if ups == depth:
        return "/" + "/".join(parts[ups:])
    own = _own_parts(number, root) if ups < depth else None
    if own is None:
        return path
    return "/" + "/".join(part for part in (*own[: depth - ups], *parts[ups:]) if part)


def _leading_ups(parts: list[str]) -> int:
    return next((count for count, part in enumerate(parts) if part != ".."), len(parts))


@lru_cache(maxsize=64)
def _depth(number: int, root: str) -> int | None:
    """Directories between the root of the hierarchy and that of our namespace."""
    version = 1 if number else 2
    names = cgroup.parse_membership(read_file(at(root, "proc/self/cgroup")) or b"").get(number, (frozenset(), ""))[0]
    # Of two mounts at one place the last one is seen: a runtime's own view of the hierarchy may lie below the node's.
    seen = {mount.path: mount for mount in cgroup.parse_mountinfo(read_file(at(root, "proc/self/mountinfo")) or b"")}
    for mount in seen.values():
        is_ours = mount.version == version and names <= mount.options
        if is_ours and cgroup.is_root(at(root, mount.path.lstrip("/"))):
            return _leading_ups(mount.root.split("/")[1:])
    if not namespaces.in_host_pid_namespace(root):
        return None
    # Process 1 is in the root or in /init.scope: what it has of ".." is all there is. Where something moved it deeper,
    # the answer would be too small, so it counts only with a path that is one of these.
    first = cgroup.parse_membership(read_file(at(root, "proc/1/cgroup")) or b"").get(number)
    parts = first[1].split("/")[1:] if first else []
    ups = _leading_ups(parts)
    return ups if first and parts[ups:] in ([], ["init.scope"]) else None


@lru_cache(maxsize=64)
def _own_parts(number: int, root: str) -> tuple[str, ...] | None:
    """The names of the directories down to the root of our namespace, found by who is in it."""
    depth = _depth(number, root)
    hierarchy = next((one for one in cgroup.hierarchies(root) if one.number == number), None)
    own = cgroup.parse_membership(read_file(at(root, "proc/self/cgroup")) or b"").get(number)
    if depth is None or hierarchy is None or hierarchy.mount is None or not hierarchy.whole or own is None:
        return None
    parts = [part for part in own[1].split("/")[1:] if part]
    ups = _leading_ups(parts)
    # We may have been moved since: then the directory that lists us lies elsewhere, as our own path says.
    lies_at = depth - ups + len(parts) - ups
    place = _directory_of_this_process(hierarchy.mount, lies_at)
    # Of another branch only the part that it shares with the namespace's root is learned from it.
    return place[:depth] if place is not None and ups == 0 else None


def _directory_of_this_process(mount: str, depth: int) -> tuple[str, ...] | None:
    """Depth first, the likely names first."""
    me = str(os.getpid()).encode()
    pending: list[tuple[str, ...]] = [()]
    for _ in range(MOST_DIRECTORIES):
        if not pending:
            return None
        place = pending.pop()
        directory = "/".join((mount, *place))
        if len(place) == depth:
            if me in (read_file(f"{directory}/cgroup.procs") or b"").split():
                return place
            continue
        pending += [(*place, name) for name in _children(directory)]
    return None


def _children(directory: str) -> list[str]:
    """The likely ones last: they are taken from the end."""
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(names, key=lambda name: (name.startswith(_LIKELY), name))
