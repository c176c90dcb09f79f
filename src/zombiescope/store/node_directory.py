"""The directory of a node's recording: who may read it, and that nobody else writes it.

Recordings hold what the kernel tells nobody but root: what other users run, and where. So node=NAME is 0750 and
belongs to the group `zombiescope`, where there is one, and everything in it takes its rights from there
(base/safe_files.py). `read_by_all` makes it 0755 for a machine on which one person works. A directory above it that
exists already stays as it is.
"""

from __future__ import annotations

import fcntl
import grp
import json
import os
import select
import stat
from contextlib import suppress
from pathlib import Path

from zombiescope.base import json as _json
from zombiescope.base import safe_files
from zombiescope.base.errors import UserError
from zombiescope.store.locate import HELD_FILE, LOCK_FILE

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


# --- one recorder at a time -------------------------------------------------------------------------------------------
# One recorder per node directory: an flock that dies with its holder, and the pid for the one who comes second.
#
# The lock that counts is on a file that only the recorder's user and root can open (HELD_FILE): any process that can
# read a file can lock it. The file with the pid (LOCK_FILE) is readable as the recording is, and is locked too, for
# older versions; a lock that somebody else has on it keeps nobody from recording.

_TRIES, _PAUSE_MS = 10, 30


class AlreadyRecordingError(UserError):
    """Somebody else records into this directory."""

    def __init__(self, node_dir: Path, pid: int | None) -> None:
        holder = f"pid {pid}" if pid else "another process"
        super().__init__(f"{node_dir} is being recorded into by {holder}", "stop it first or choose another directory")
        self.pid = pid


class Lock:
    def __init__(self, node_dir: Path, started_us: int) -> None:
        """Raises AlreadyRecordingError, UnsafePlaceError, or OSError when the directory cannot be written."""
        self._held = safe_files.open_lock(node_dir / HELD_FILE)
        self._fd = safe_files.open_lock(node_dir / LOCK_FILE, public=True)
        if not _acquire(self._held):
            holder = _holder(self._fd)
            self.release()
            raise AlreadyRecordingError(node_dir, holder)
        with suppress(BlockingIOError):
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # On a full disk the lock still holds; only the pid cannot be written.
        with suppress(OSError):
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, json.dumps({"pid": os.getpid(), "started_us": started_us}).encode(), 0)

    def release(self) -> None:
        os.close(self._fd)
        os.close(self._held)


def _acquire(descriptor: int) -> bool:
    # A reader that asks whether somebody records here holds a shared lock for a moment: try more than once.
    for attempt in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            select.poll().poll(_PAUSE_MS if attempt < _TRIES - 1 else 0)
        else:
            return True
    return False


def _holder(fd: int) -> int | None:
    try:
        return int(_json.loads(os.pread(fd, 4096, 0))["pid"])
    except (ValueError, KeyError, TypeError, OSError):
        return None
