"""One recorder per node directory: an flock that dies with its holder, and the pid for the one who comes second."""

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
from zombiescope.store.locate import LOCK_FILE

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
        self._fd = safe_files.open_lock(node_dir / LOCK_FILE)
        if not self._acquire():
            holder = _holder(self._fd)
            os.close(self._fd)
            raise AlreadyRecordingError(node_dir, holder)
        # On a full disk the lock still holds; only the pid cannot be written.
        with suppress(OSError):
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, json.dumps({"pid": os.getpid(), "started_us": started_us}).encode(), 0)

    def _acquire(self) -> bool:
        # A reader that asks whether somebody records here holds a shared lock for a moment: try more than once.
        for attempt in range(_TRIES):
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                select.poll().poll(_PAUSE_MS if attempt < _TRIES - 1 else 0)
            else:
                return True
        return False

    def release(self) -> None:
        os.close(self._fd)


def _holder(fd: int) -> int | None:
    try:
        return int(_json.loads(os.pread(fd, 4096, 0))["pid"])
    except (ValueError, KeyError, TypeError, OSError):
        return None
