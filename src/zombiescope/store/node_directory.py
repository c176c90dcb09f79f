"""The directory of a node's recording: who may read it, and that nobody else writes it.

Recordings hold what the kernel tells nobody but root: what other users run, and where. So node=NAME is 0750 and
belongs to the group `zombiescope`, where there is one, and everything in it takes its rights from there
(base/safe_files.py). `read_by_all` makes it 0755 for a machine on which one person works. A directory above it that
exists already stays as it is.
"""

from __future__ import annotations

import grp
import os
import stat
from contextlib import suppress
from pathlib import Path

from zombiescope.base import safe_files

PRIVATE, OPEN = 0o750, 0o755
_OF_A_FILE = {PRIVATE: 0o640, OPEN: 0o644}


def prepare(node_dir: Path, *, read_by_all: bool = False, shared: bool = False) -> None:
    """Makes it, with what is missing above it. `shared`: though others may write there too, for whoever has no more
    rights than they. Raises UnsafePlaceError, OSError."""
    if not shared:
        safe_files.refuse_shared(node_dir)
    mode, group = OPEN if read_by_all else PRIVATE, _group()
    _make_above(node_dir.parent, mode, group)
    with safe_files.opened_directory(node_dir.parent, links=True) as above:
        made = _made(above, node_dir.name)
    with safe_files.opened_directory(node_dir) as directory:
        before = stat.S_IMODE(os.fstat(directory).st_mode)
        _set(directory, mode, group)
        if not made and before & 0o777 != mode:
            _set_below(directory, mode)


def _make_above(path: Path, mode: int, group: int | None) -> None:
    if path.is_dir():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with safe_files.opened_directory(path.parent, links=True) as above:
        made = _made(above, path.name)
    if made:
        with safe_files.opened_directory(path) as directory:
            _set(directory, mode, group)


def _made(above: int, name: str) -> bool:
    try:
        os.mkdir(name, 0o700, dir_fd=above)
    except FileExistsError:
        return False
    return True


def _set(directory: int, mode: int, group: int | None) -> None:
    """As far as we may: a directory that root made for us stays as root made it."""
    with suppress(PermissionError):
        if group is not None and os.fstat(directory).st_gid != group:
            os.fchown(directory, -1, group)
    with suppress(PermissionError):
        if stat.S_IMODE(os.fstat(directory).st_mode) != mode:
            os.fchmod(directory, mode)


def _set_below(directory: int, mode: int) -> None:
    """What was recorded under the other setting is readable as what comes now. Locks stay private: a process that can
    read one can hold it."""
    for folder, _, files, descriptor in os.fwalk(".", dir_fd=directory, follow_symlinks=False):
        if folder != ".":
            _set(descriptor, mode, None)
        for name in files:
            with suppress(OSError):
                opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=descriptor)
                try:
                    if os.fstat(opened).st_mode & 0o077:
                        os.fchmod(opened, _OF_A_FILE[mode])
                finally:
                    os.close(opened)


def _group() -> int | None:
    try:
        number = grp.getgrnam(safe_files.GROUP).gr_gid
    except KeyError:
        return None
    return number if os.geteuid() == 0 or number in {os.getegid(), *os.getgroups()} else None
