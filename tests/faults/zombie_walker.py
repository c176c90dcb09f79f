"""Zombie memory cgroups, pinned by pages of a tmpfs, and somebody who drops slab caches, which walks all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.fault import Fault
from tests.zombies import zombie_farm

COUNT = 20_000
SCRIPT = r"""
fd = os.open("/proc/sys/vm/drop_caches", os.O_WRONLY)
wait_for_the_word()
while True:
    os.write(fd, b"2")
"""


@contextmanager
def place(directory: Path) -> Iterator[list[str]]:
    with zombie_farm(Path("/sys/fs/cgroup/memory"), "zs-fault-zombies") as farm:
        farm.leak(COUNT)
        yield []


FAULT = Fault("zombie-memcg", "walker", SCRIPT, culprit="leaky", place=place)

if __name__ == "__main__":
    FAULT.demonstrate()
