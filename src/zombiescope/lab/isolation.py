"""Mount and network namespaces of a daemon's own: nothing that it mounts, listens on or configures is the node's.

A container runtime mounts layers, keeps sockets below /run, writes sysctls and firewall rules. In namespaces of its own
all of that is gone with its last process, whoever kills it. Called by a process that is about to become, or to start,
such a daemon; there is no way back from it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

_CLONE_NEWNS, _CLONE_NEWNET = 0x00020000, 0x40000000
_CLONE_NEWUTS, _CLONE_NEWIPC = 0x04000000, 0x08000000
_MS_BIND, _MS_REC, _MS_PRIVATE, _MS_SLAVE, _MS_SHARED = 0x1000, 0x4000, 1 << 18, 1 << 19, 1 << 20
_libc = ctypes.CDLL(None, use_errno=True)


def enter_own_namespaces(*, network: bool = True) -> None:
    """/run is empty in there: sockets of the node's own runtimes are out of reach, and ours are out of its way. Without
    `network` unix sockets are the node's, as those of its runtimes are."""
    _check(_libc.unshare(_CLONE_NEWNS | (_CLONE_NEWNET if network else 0)), "unshare")
    _mount("none", "/", "none", _MS_REC | _MS_SLAVE)
    _mount("none", "/", "none", _MS_REC | _MS_SHARED)  # of this namespace only: kubelet hands mounts to its containers
    tmpfs(Path("/run"))


def leave_the_node() -> None:
    """Also System V IPC and the host's name: for programs that try what they can reach. Shared memory of the node is
    out of reach, too."""
    _check(_libc.unshare(_CLONE_NEWNS | _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWUTS), "unshare")
    _mount("none", "/", "none", _MS_REC | _MS_PRIVATE)
    tmpfs(Path("/run"))
    tmpfs(Path("/dev/shm"))  # noqa: S108  this is the tmpfs


def tmpfs(place: Path) -> None:
    """A tmpfs that this namespace alone sees, and that goes with it."""
    place.mkdir(parents=True, exist_ok=True)
    _mount("tmpfs", str(place), "tmpfs", 0)


def own_copy(directory: Path, scratch: Path) -> None:
    """What is written below a directory of the node goes to a scratch tmpfs, and the node's files stay as they are."""
    tmpfs(scratch)
    upper, work = scratch / "upper", scratch / "work"
    upper.mkdir()
    work.mkdir()
    _mount("overlay", str(directory), "overlay", 0, f"lowerdir={directory},upperdir={upper},workdir={work}")


def copies_of_sysctls(names: Sequence[str], place: Path) -> None:
    """What is written to these sysctls goes to copies; those of a network namespace need none."""
    place.mkdir(parents=True, exist_ok=True)
    for name in names:
        setting, copy = Path("/proc/sys") / name, place / name.replace("/", ".")
        if setting.exists():
            copy.write_text(setting.read_text())
            _mount(str(copy), str(setting), "none", _MS_BIND)


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    _check(
        _libc.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode() or None), f"mount {target}"
    )


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
