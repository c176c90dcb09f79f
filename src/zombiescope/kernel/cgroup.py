"""Which cgroup hierarchies this node has, where they are mounted, and which one accounts memory.

Sources: /proc/self/cgroup (every active hierarchy with its number; 0 is cgroup2), /proc/self/mountinfo (where
it is mounted), /proc/cgroups (numbers and counts of the controllers of cgroup1), and cgroup.controllers of
the cgroup2 mount. A hierarchy's number is what the cgroup tracepoints print as `root`.

v1, v2 and hybrid nodes differ only in where the memory controller is: /proc/cgroups names its hierarchy;
0 there, or no row at all (af000ce85293b hides the controllers of cgroup2 since v6.15), leaves cgroup2.

In a container a mount may show a part of the hierarchy. Files that only a hierarchy's root has or lacks show
that apart, whatever the cgroup namespace makes of the paths.

Cost: four small files, read at start. Absence: no cgroupfs in sight is an empty result.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from zombiescope.kernel.procfile import at, number, read_file

_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Controller:
    """One row of /proc/cgroups."""

    name: str
    hierarchy: int
    num_cgroups: int
    """Of the whole hierarchy, the root and the dying included."""
    enabled: bool


@dataclass(frozen=True, slots=True)
class CgroupMount:
    """One cgroupfs row of mountinfo."""

    version: int
    root: str
    """The directory of the hierarchy that the mount shows, as the reader's cgroup namespace names it."""
    path: str
    options: frozenset[str]


@dataclass(frozen=True, slots=True)
class Hierarchy:
    number: int
    """As in the tracepoints' root field: 0 is cgroup2."""
    version: int
    controllers: frozenset[str]
    mount: str | None
    """None: active on this node, but not mounted where we are."""
    whole: bool
    """The mount shows the hierarchy's root, not only the part of a container."""


def parse_cgroups(data: bytes) -> dict[str, Controller]:
    """The rows of /proc/cgroups that are whole."""
    controllers: dict[str, Controller] = {}
    for line in data[: data.rfind(b"\n") + 1].split(b"\n"):
        fields = line.split()
        values = [number(field) for field in fields[1:]]
        if len(values) != 3 or None in values:
            continue
        hierarchy, num_cgroups, enabled = (value or 0 for value in values)
        name = fields[0].decode("utf-8", "replace")
        controllers[name] = Controller(name, hierarchy, num_cgroups, bool(enabled))
    return controllers


def parse_mountinfo(data: bytes) -> tuple[CgroupMount, ...]:
    """The cgroup and cgroup2 mounts among the whole lines."""
    mounts = []
    for line in data[: data.rfind(b"\n") + 1].decode("utf-8", "surrogateescape").split("\n"):
        place, dash, kind = line.partition(" - ")
        fields, source = place.split(" "), kind.split(" ")
        if not dash or len(fields) < 6 or len(source) < 3 or source[0] not in ("cgroup", "cgroup2"):
            continue
        version = 2 if source[0] == "cgroup2" else 1
        options = frozenset(source[2].split(","))
        mounts.append(CgroupMount(version, _unescape(fields[3]), _unescape(fields[4]), options))
    return tuple(mounts)


def _unescape(path: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), path)


def parse_membership(data: bytes) -> dict[int, tuple[frozenset[str], str]]:
    """/proc/PID/cgroup: hierarchy number -> (controllers, path)."""
    found: dict[int, tuple[frozenset[str], str]] = {}
    for line in data[: data.rfind(b"\n") + 1].split(b"\n"):
        hierarchy, _, rest = line.partition(b":")
        controllers, colon, path = rest.partition(b":")
        key = number(hierarchy)
        if key is not None and colon:
            names = controllers.decode("utf-8", "replace").split(",")
            found[key] = (frozenset(filter(None, names)), path.decode("utf-8", "surrogateescape"))
    return found


def is_root(directory: str) -> bool:
    """Whether a cgroup directory is the root of its hierarchy and not only of a container's view."""
    # Only v1 roots have release_agent; every cgroup2 directory but the root has cgroup.events.
    if os.access(f"{directory}/release_agent", os.F_OK):
        return True
    is_v2 = os.access(f"{directory}/cgroup.controllers", os.F_OK)
    return is_v2 and not os.access(f"{directory}/cgroup.events", os.F_OK)


def hierarchies(root: str = "/") -> tuple[Hierarchy, ...]:
    """Every active hierarchy, by number."""
    membership = parse_membership(read_file(at(root, "proc/self/cgroup")) or b"")
    mounts = parse_mountinfo(read_file(at(root, "proc/self/mountinfo")) or b"")
    return tuple(_hierarchy(root, key, membership[key][0], mounts) for key in sorted(membership))


def _hierarchy(root: str, key: int, names: frozenset[str], mounts: Iterable[CgroupMount]) -> Hierarchy:
    version = 1 if key else 2
    shown = [mount for mount in mounts if mount.version == version and names <= mount.options]
    paths = sorted((at(root, mount.path.lstrip("/")) for mount in shown), key=lambda path: (not is_root(path), path))
    if not paths:
        return Hierarchy(key, version, names, None, False)
    if version == 2:
        names = frozenset((read_file(f"{paths[0]}/cgroup.controllers") or b"").decode("utf-8", "replace").split())
    return Hierarchy(key, version, names, paths[0], is_root(paths[0]))


def directory(hierarchy: Hierarchy, path: str) -> str | None:
    """The directory of a path from /proc/PID/cgroup; None if it is gone or out of this mount's sight."""
    if hierarchy.mount is None or "/.." in path:
        return None
    found = hierarchy.mount + path.rstrip("/")
    return found if os.access(found, os.F_OK) else None


def of_controller(name: str, found: Iterable[Hierarchy]) -> Hierarchy | None:
    """The hierarchy that has a controller, such as "memory"; None where it is off or out of sight."""
    return next((hierarchy for hierarchy in found if name in hierarchy.controllers), None)
