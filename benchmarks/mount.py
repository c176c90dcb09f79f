"""Where memory cgroups live on this machine."""

from __future__ import annotations

from pathlib import Path

from zombiescope.kernel import cgroup


def memory_mount() -> Path:
    memory = cgroup.of_controller("memory", cgroup.hierarchies())
    if memory is None or memory.mount is None:
        raise SystemExit("this benchmark needs a writable memory cgroup hierarchy")
    return Path(memory.mount)
