"""Every process that a test starts is gone when the test is over.

Each child carries its owner's name in its environment, and hands it on to what it starts itself: so a daemon that left
its parent and its session is still found. The owner is the test, or the fixture of a wider scope that is being made.
A child that was only forked has no environment of its own; it is found as a child of this process.

A process that hides from both (forked by a child that cleared its environment, and orphaned) is not found.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OWNER = "PYTEST_CHILD_OF"
GRACE_S = 5.0
"""How long a child may take to end by itself after its test."""

_numbers = itertools.count()
_owner = ""
_started: set[str] = set()
"""Owners that started a program; nobody searches for children of the others."""


def mark_what_is_started() -> None:
    """From now on, in this process."""
    plain = subprocess.Popen.__init__

    def start(self: subprocess.Popen[Any], *arguments: Any, **options: Any) -> None:
        if _owner:
            _started.add(_owner)
            given = options.get("env")
            options["env"] = {**(os.environ if given is None else given), OWNER: _owner}
        plain(self, *arguments, **options)

    subprocess.Popen.__init__ = start  # type: ignore[method-assign]


@contextlib.contextmanager
def owned_by(name: str) -> Iterator[str]:
    """What is started inside the block belongs to this owner, whose full name it gives."""
    global _owner
    before, _owner = _owner, f"{os.getpid()}-{next(_numbers)}-{name}"
    os.environ[OWNER] = _owner
    try:
        yield _owner
    finally:
        _owner = before
        os.environ[OWNER] = before
        if not before:
            del os.environ[OWNER]


@contextlib.contextmanager
def owned_by_run(name: str) -> Iterator[None]:
    """What is started inside the block belongs to the run: daemons of a session that tests stop and start again."""
    global _owner
    before, _owner = _owner, f"{os.getpid()}-run-{name}"
    try:
        yield
    finally:
        _owner = before


def own() -> set[int]:
    """Direct children of this process that still run."""
    found: set[int] = set()
    for listing in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that ended meanwhile
            found.update(int(pid) for pid in listing.read_text().split())
    return {pid for pid in found if runs(pid)}


def of(owner: str, before: set[int]) -> set[int]:
    """What still runs of an owner. `before`: the direct children that this process had when the owner began."""
    unmarked = {pid for pid in own() - before if not _mark(pid).startswith(f"{os.getpid()}-")}
    if owner not in _started:
        return unmarked | {pid for pid in own() - before if _mark(pid) == owner}
    return unmarked | {pid for pid in _processes() if _mark(pid) == owner}


def of_whoever_runs() -> set[int]:
    """What the current owner started; where there is none (a wider fixture is being ended), everything."""
    marked = {pid for pid in _processes() if _mark(pid) == _owner} if _owner else of_this_run()
    return marked | {pid for pid in own() if not _mark(pid).startswith(f"{os.getpid()}-")}


def of_this_run() -> set[int]:
    return {pid for pid in _processes() if _mark(pid).startswith(f"{os.getpid()}-")}


def left_by(owner: str, before: set[int], grace_s: float = GRACE_S) -> dict[int, str]:
    """Process -> its command line, of those that did not end in time."""
    end = time.monotonic() + grace_s
    while (left := of(owner, before)) and time.monotonic() < end:
        time.sleep(0.02)
    return {pid: _command(pid) for pid in left}


def kill(pids: set[int], grace_s: float = GRACE_S) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + grace_s
    while any(runs(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.01)


def _processes() -> list[int]:
    return [int(place.name) for place in Path("/proc").glob("[1-9]*") if int(place.name) != os.getpid()]


def _mark(pid: int) -> str:
    """The owner that a process names; empty for a defunct one, and for one of somebody else."""
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            if entry.startswith(OWNER.encode() + b"="):
                return entry.partition(b"=")[2].decode(errors="replace")
    return ""


def runs(pid: int) -> bool:
    """Not gone, and not merely unreaped."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] not in "ZX"
    return False


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return "?"
