"""/proc/self/ns: whether this process sees the node or only a container.

The initial namespaces have inode numbers that are part of the kernel's interface (PROC_*_INIT_INO): ipc, uts,
user, pid, cgroup and time on every kernel that has them; net and mnt only on recent ones (seen on v6.18).
Where that does not settle it, process 1 is asked, which needs CAP_SYS_PTRACE and the host's PID namespace;
else the answer is None.

Outside the host's PID namespace every other task is pid 0 to perf: the node would look idle. Outside its
cgroup namespace paths begin with /.. . Cost: one readlink each. Absence (an old kernel without that kind of
namespace): the host's.
"""

import re

from zombiescope.kernel.procfile import at, read_link

INIT_INODES = {
    "time": 0xEFFFFFFA,
    "cgroup": 0xEFFFFFFB,
    "pid": 0xEFFFFFFC,
    "user": 0xEFFFFFFD,
    "uts": 0xEFFFFFFE,
    "ipc": 0xEFFFFFFF,
}
_RECENT_INIT_INODES = {"net": 0xEFFFFFF9, "mnt": 0xEFFFFFF8}

_LINK = re.compile(r"\w+:\[(\d+)\]$")


def inode(kind: str, process: int | str = "self", root: str = "/") -> int | None:
    """The inode of a process's namespace; None where the kernel lacks it or denies the look."""
    match = _LINK.match(read_link(at(root, f"proc/{process}/ns/{kind}")) or "")
    return int(match[1]) if match else None


def in_host(kind: str, root: str = "/") -> bool | None:
    """Whether our namespace of a kind is the node's own; None when that cannot be known."""
    ours = inode(kind, root=root)
    if kind in INIT_INODES:
        return ours is None or ours == INIT_INODES[kind]
    if ours is not None and ours == _RECENT_INIT_INODES.get(kind):
        return True
    first = inode(kind, 1, root) if in_host("pid", root) else None
    return None if ours is None or first is None else ours == first


def in_host_pid_namespace(root: str = "/") -> bool:
    return bool(in_host("pid", root))


def in_host_cgroup_namespace(root: str = "/") -> bool:
    return bool(in_host("cgroup", root))
