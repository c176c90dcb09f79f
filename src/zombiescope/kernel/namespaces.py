"""/proc/self/ns: whether this process sees the node or only a container.

The initial namespaces have inode numbers that are part of the kernel's interface (PROC_*_INIT_INO): ipc, uts,
user, pid, cgroup and time on every kernel that has them; net and mnt only on recent ones (seen on v6.18).
Where that does not settle it, process 1 is asked, which needs CAP_SYS_PTRACE and the host's PID namespace;
else the answer is None.

In a pod with the host's PID namespace, process 1 is also the way to what is the node's: /proc/1/net are the files of
the host's network namespace, /proc/1/root is the node's file system, and the sysfs in it shows the node's cards.
The last two need CAP_SYS_PTRACE, and an AppArmor profile that allows it.

Outside the host's PID namespace every other task is pid 0 to perf: the node would look idle. Outside its
cgroup namespace paths begin with /.. . Cost: one readlink each. Absence (an old kernel without that kind of
namespace): the host's.
"""

import os
import re
from functools import lru_cache

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


@lru_cache(maxsize=8)
def node_root(root: str = "/") -> str:
    """Where the node's own files are: /proc/1/root where our root is that of an image, else `root`."""
    first = "/proc/1/root"
    if root != "/" or in_host("mnt") is not False or not in_host_pid_namespace():
        return root
    try:
        return first if os.path.isdir(f"{first}/proc") else root  # noqa: PTH112 - no pathlib in the recorder
    except OSError:
        return root


@lru_cache(maxsize=8)
def node_network(root: str = "/") -> str | None:
    """The process below whose /proc/PID/net the node's network is: "self" in the host's network namespace or where
    nobody can tell, "1" where the host's is another one than ours, None where that cannot be reached."""
    if root != "/" or in_host("net") is not False:
        return "self"
    return "1" if os.access("/proc/1/net/dev", os.R_OK) else None
