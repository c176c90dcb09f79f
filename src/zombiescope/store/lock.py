"""One recorder per node directory: an flock that dies with its holder, and the pid for the one who comes second.

The lock that counts is on a file that only the recorder's user and root can open (HELD_FILE): any process that can read
a file can lock it. The file with the pid (LOCK_FILE) is readable as the recording is, and is locked too, for older
versions; a lock that somebody else has on it keeps nobody from recording.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
from contextlib import suppress
from pathlib import Path

from zombiescope.base import json as _json
from zombiescope.base import safe_files
from zombiescope.base.errors import UserError
from zombiescope.store.locate import HELD_FILE, LOCK_FILE

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
