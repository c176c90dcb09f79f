"""The recorder goes first, where that is allowed.

A node that has no CPU left is worth recording, and the recorder needs some milliseconds of each second. With
CAP_SYS_NICE, or under a limit that allows it (LimitNICE= of the unit), it is raised before its first thread is started.
All its threads are: they share the interpreter's lock, and were those that look up names left behind, the loop would
wait for one that holds the lock and does not run (a gap of 1.2 s was seen that way). Child processes, which cost more,
stay where they would be, but for the doctor, which raises itself once it runs (diagnosis/standby.py). A recorder that
somebody started with a nice value of his own keeps it.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

WANTED = -10


GRANT = "LimitNICE=-10 in the unit, raisePriority: true in the chart (CAP_SYS_NICE)"


def refused() -> str | None:
    """Why this process, which root or a service manager started for a node, does not go first; None where it does, or
    where somebody chose its nice value."""
    return "setpriority(2) is refused: the recorder runs at nice 0, as everybody does" if _now() == 0 else None


def claim() -> int:
    """For the calling thread, and all that it starts. What it has then."""
    if _now() != 0:
        return _now()
    for nice in (WANTED, _allowed()):
        if nice < 0 and _set(nice):
            break
    return _now()


@contextmanager
def usual() -> Iterator[None]:
    """What is started inside the block has no more than anybody."""
    before = _now()
    if before >= 0:
        yield
        return
    _set(0)
    try:
        yield
    finally:
        _set(before)


def _allowed() -> int:
    """The lowest nice value that the limit gives."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NICE)
    return WANTED if soft == resource.RLIM_INFINITY else max(WANTED, 20 - soft)


def _now() -> int:
    return os.getpriority(os.PRIO_PROCESS, 0)


def _set(nice: int) -> bool:
    try:
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    except OSError:
        return False
    return True
