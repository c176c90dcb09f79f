"""Real zombie cgroups, made in a parent of their own and freed on demand.

A child cgroup is made, a process in it touches one page of a tmpfs file (which no idle machine reclaims by itself),
leaves, and the child is removed: the page keeps the memory cgroup alive until the file goes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MAKER = r"""
import os, sys
parent, pins, first, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
own = os.open(parent + "/cgroup.procs", os.O_WRONLY)
for number in range(first, first + count):
    child = f"{parent}/job-{number}"
    os.mkdir(child)
    with open(child + "/cgroup.procs", "w") as file:
        file.write("0")
    fd = os.open(f"{pins}/{number}", os.O_CREAT | os.O_WRONLY, 0o600)
    os.write(fd, b"x")
    os.close(fd)
    os.write(own, b"0")
    os.rmdir(child)
"""


class ZombieFarm:
    def __init__(self, parent: Path, pins: Path) -> None:
        self.parent = parent
        self.pins = pins
        self._next = 0

    def leak(self, count: int) -> int:
        """Makes so many zombies in a process named `leaky`; gives its pid."""
        process = subprocess.Popen(
            [sys.executable, "-c", "import os,sys;open('/proc/self/comm','w').write('leaky');exec(sys.argv.pop(1))",
             MAKER, str(self.parent), str(self.pins), str(self._next), str(count)]
        )  # fmt: skip
        self._next += count
        assert process.wait() == 0
        return process.pid

    def free(self) -> None:
        """Lets all of them go."""
        for entry in os.scandir(self.pins):
            Path(entry.path).unlink()


@contextmanager
def zombie_farm(mount: Path, name: str) -> Iterator[ZombieFarm]:
    """A parent cgroup below `mount` and a tmpfs directory for the pins, both gone afterwards."""
    parent, pins = mount / name, Path("/dev/shm") / name
    shutil.rmtree(pins, ignore_errors=True)
    parent.mkdir(exist_ok=True)
    pins.mkdir()
    farm = ZombieFarm(parent, pins)
    try:
        yield farm
    finally:
        with suppress(OSError):
            farm.free()
        shutil.rmtree(pins, ignore_errors=True)
        for child in parent.glob("job-*"):
            child.rmdir()
        parent.rmdir()
