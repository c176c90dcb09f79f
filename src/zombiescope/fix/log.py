"""The action log: one JSON object a line, appended and synced before and after every step, never changed.

    {"at": 1775038996.5, "run": "…", "who": {…}, "target": "incident:…", "step": "unit.disable:ecs.service",
     "event": "applying", "action": {"kind": …, "arguments": {…}}, "before": {…}, "after": null, "why": ""}

    planned    what a run is about to do, in order          applying   the next line of this step says how it went
    applied    done by us                                   found      it was so already: somebody else did it
    failed     it may be half done                          skipped    a person said no
    undoing    as applying                                  undone     it is as it was before
    verified   what verify said                             undo-failed

A process that is killed between two lines leaves an "applying" or an "undoing" without an end: the next run looks at
the machine, finishes it or takes it back. A line that was cut off by the kill is closed by the next append and ignored.

It lies in a directory of root's own and not in a recording: what it says is done again by root, so whoever may write a
recording must not be able to write it. One process holds it at a time, by a lock on a file that only root can open:
everybody may read the log, and a process that can read a file can lock it.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from zombiescope.base import safe_files
from zombiescope.base.errors import UserError
from zombiescope.model.plans.log_entry import FILE, Entry, directory, entries

__all__ = ["FILE", "ActionLog", "Entry", "LogBusyError", "directory", "entries", "opened", "who"]


LOCK = "lock"


class LogBusyError(UserError):
    """Another fix runs."""


def who() -> dict[str, Any]:
    """Who runs this, as far as the machine knows: sudo keeps the name of the person, pkexec (polkit) the number."""
    return {
        "uid": os.getuid(),
        "sudo": os.environ.get("SUDO_USER") or _asked_polkit(),
        "login": _login(),
        "pid": os.getpid(),
    }


def _asked_polkit() -> str | None:
    number = os.environ.get("PKEXEC_UID", "")
    try:
        return pwd.getpwuid(int(number)).pw_name
    except (ValueError, KeyError, OverflowError):
        return None


def _login() -> int | None:
    try:
        said = int(Path("/proc/self/loginuid").read_text())
    except (OSError, ValueError):
        return None
    return None if said == 0xFFFFFFFF else said


class ActionLog:
    """Open for appending, and held."""

    def __init__(self, descriptor: int, place: Path) -> None:
        self._descriptor = descriptor
        self.place = place
        self.run = os.urandom(6).hex()
        self._who = who()

    def append(self, target: str, event: str, step: str = "", **more: Any) -> Entry:
        """On the disk when this returns. Raises OSError: then the step must not be done."""
        entry = Entry(time.time(), self.run, target, event, step, who=self._who, **more)
        data = json.dumps(entry.document()).encode() + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]
        os.fsync(self._descriptor)
        return entry

    def entries(self) -> list[Entry]:
        return entries(self.place)


@contextmanager
def opened(place: Path | None = None) -> Iterator[ActionLog]:
    """Raises LogBusyError, UnsafePlaceError, OSError."""
    place = (place or directory()).absolute()
    safe_files.refuse_shared(place)
    place.mkdir(mode=0o755, parents=True, exist_ok=True)
    with ExitStack() as held:
        lock = safe_files.open_lock(place / LOCK)
        held.callback(os.close, lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LogBusyError("another fix changes this node right now", "wait until it has ended") from None
        descriptor = safe_files.open_lock(place / FILE, public=True)
        held.callback(os.close, descriptor)
        _close_cut_line(descriptor)
        yield ActionLog(descriptor, place)


def _close_cut_line(descriptor: int) -> None:
    end = os.lseek(descriptor, 0, os.SEEK_END)
    if end and os.pread(descriptor, 1, end - 1) != b"\n":
        os.write(descriptor, b"\n")
        os.fsync(descriptor)
