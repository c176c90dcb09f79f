"""/proc/self/ns: whether this process sees the node or only a container.

The initial namespaces have inode numbers that are part of the kernel's interface (PROC_*_INIT_INO): ipc, uts,
user, pid, cgroup and time on every kernel that has them; net and mnt since v6.18. Before, process 1 is asked, which
needs CAP_SYS_PTRACE, the host's PID namespace, and an AppArmor profile that allows it; else the answer is None, and
what is in sight has to do: a network controller without an interface lies in another network namespace, and a root on
an overlay is an image's.

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

from zombiescope.kernel.nic_queue import physical_interfaces
from zombiescope.kernel.procfile import at, names_in, read_file, read_link, read_text
from zombiescope.kernel.release import kernel_version

INIT_INODES = {
    "time": 0xEFFFFFFA,
    "cgroup": 0xEFFFFFFB,
    "pid": 0xEFFFFFFC,
    "user": 0xEFFFFFFD,
    "uts": 0xEFFFFFFE,
    "ipc": 0xEFFFFFFF,
}
_RECENT_INIT_INODES = {"net": 0xEFFFFFF9, "mnt": 0xEFFFFFF8}

_RECENT = (6, 18)
_NETWORK_CONTROLLER = "0x02"
"""How the PCI class of a card begins."""

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
    recent = _RECENT_INIT_INODES.get(kind)
    if ours is not None and recent is not None and (ours == recent or _is_recent(root)):
        return ours == recent
    first = inode(kind, 1, root) if in_host("pid", root) else None
    return None if ours is None or first is None else ours == first


def _is_recent(root: str) -> bool:
    """Whether the inodes of the initial network and mount namespaces are fixed."""
    version = kernel_version(read_text(at(root, "proc/sys/kernel/osrelease")))
    return version is not None and version >= _RECENT


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


def hides_node_root(root: str = "/") -> bool:
    """Whether our root is that of an image, and the node's cannot be reached."""
    return in_host("mnt", root) is not True and _is_image(root) and not os.access(at(root, "proc/1/root"), os.F_OK)


def _is_image(root: str) -> bool:
    """A container's root is an overlay nearly everywhere; elsewhere its cgroup namespace tells."""
    mounts = [line.split() for line in (read_file(at(root, "proc/self/mountinfo")) or b"").splitlines()]
    kinds = [fields[fields.index(b"-") + 1] for fields in mounts if fields[4:5] == [b"/"] and b"-" in fields]
    return kinds[-1:] == [b"overlay"] or in_host("cgroup", root) is False


@lru_cache(maxsize=8)
def node_network(root: str = "/") -> str | None:
    """The process below whose /proc/PID/net the node's network is: "self" in the host's network namespace or where
    nobody can tell, "1" where the host's is another one than ours, None where that cannot be reached."""
    inside = in_host("net") if root == "/" else True
    if inside is None:
        inside = not _misses_a_card()
    if inside:
        return "self"
    return "1" if os.access("/proc/1/net/dev", os.R_OK) else None


def _misses_a_card(root: str = "/") -> bool:
    """A network controller has a driver, and no interface here is that of a card."""
    if physical_interfaces(root):
        return False
    devices = at(root, "sys/bus/pci/devices")
    return any(
        (read_text(f"{devices}/{name}/class") or "").startswith(_NETWORK_CONTROLLER)
        and os.access(f"{devices}/{name}/driver", os.F_OK)
        for name in names_in(devices) or ()
    )
