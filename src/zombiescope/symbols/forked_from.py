"""The processes that a process was forked from, with the same program in the same memory.

A forked worker runs code that its parent generated before the fork, and whose names are in the parent's perf map. What
was executed since is another program: exec gives a process a new stack at a new place, so a parent whose stack begins
elsewhere is none that it shares code with. Read: /proc/PID/stat, whose addresses need the right to look at a process
(CAP_SYS_PTRACE); without it nobody is a parent.
"""

from __future__ import annotations

import os
from typing import NamedTuple

MOST = 4
_PARENT, _CODE, _STACK = 1, 23, 25
"""Fields after the name: the parent, where the program's code begins, where its stack does."""


class _Image(NamedTuple):
    parent: int
    code: int
    stack: int


def ancestors(pid: int, proc: str = "/proc") -> list[int]:
    """The nearest first; only those that live."""
    found: list[int] = []
    image = _image(pid, proc)
    while image is not None and image.stack and image.parent > 1 and len(found) < MOST:
        parent = _image(image.parent, proc)
        if parent is None or parent[1:] != image[1:]:
            break
        found.append(image.parent)
        image = parent
    return found


def _image(pid: int, proc: str) -> _Image | None:
    try:
        fd = os.open(f"{proc}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fields = os.read(fd, 4096).rpartition(b")")[2].split()
        return _Image(*(int(fields[at]) for at in (_PARENT, _CODE, _STACK)))
    except (OSError, ValueError, IndexError):
        return None
    finally:
        os.close(fd)
