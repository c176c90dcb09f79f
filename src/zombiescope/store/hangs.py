"""When a task that waits is in trouble: one rule for the recorder, which tells, and for the diagnosis, which judges.

A task that has not run at all since it began to wait is no proof of a hang: a sync on a slow disk waits for seconds,
and the disk works. So what counts is whether the thing that it waits for goes on. Where it does, only the kernel's own
patience (two minutes) is too long; where it stands still, or nobody can tell, the times below.
"""

from __future__ import annotations

REMOTE = frozenset({"nfs", "lustre", "ceph", "cifs", "9p", "afs", "gpfs", "beegfs"})
"""File systems that another machine serves."""
STORAGE = REMOTE | {"fuse", "disk", "journal", "frozen", "writeback", "swap"}
STOPPED, SUSPENDED, ASLEEP = "stopped", "suspended", "asleep"
"""Processes that used the CPU and do not any more (recorder/quiet_processes.py): stopped by a signal while their parent
goes on, stopped with the rest of their job in a terminal, and workers of a GPU's process that sleep."""
NEVER = frozenset({"paused", "vfork", STOPPED, SUSPENDED, ASLEEP})
"""No hangs in the kernel: waits that somebody asked for (docker pause, the parent of a process that is just being
started), and processes that do not wait in it."""

PATIENCE_S = {
    "frozen": 20.0,  # a snapshot freezes a file system for seconds
    "gpu": 30.0,  # the driver initialises a GPU that nobody kept open
    "lock": 30.0,
}
HANGS_S = 10.0
MOVES_S = 120.0
"""As long as the kernel waits before it reports a hung task."""


def hangs(kind: str | None, seconds: float, moves: bool | None, *, kernel_thread: bool = False) -> bool:
    """`moves`: whether the thing that is waited for completed anything meanwhile; None where that is not known. A
    thread of the kernel waits for ever in some drivers, so of those only what waits for storage counts."""
    if kind == "writeback" and moves:  # whoever writes more than the disk takes is slowed down to what it takes
        return False
    if kind in NEVER or (kernel_thread and kind not in STORAGE):
        return False
    if moves:
        return seconds >= MOVES_S
    return seconds >= PATIENCE_S.get(kind or "", PATIENCE_S["lock"] if kind is None else HANGS_S)


def thing(kind: str | None, resource: str | None) -> str:
    """What is waited for, as a person would say it."""
    if kind in REMOTE:
        return f"{kind} {resource}" if resource else f"a file server ({kind})"
    if kind == "fuse":
        return f"the FUSE file system at {resource}" if resource else "a FUSE file system"
    if kind == "frozen":
        return f"the frozen file system on {resource}" if resource else "a frozen file system"
    if kind in ("disk", "journal", "writeback", "swap"):
        return f"the disk {resource}" if resource else "a disk"
    if kind == "gpu":
        return "the GPU driver"
    return "a lock in the kernel" if kind == "lock" else "something in the kernel"
