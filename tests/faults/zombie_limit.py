"""Zombies below a parent with a memory limit, and a live sibling that reads: its reclaim walks all of them.

The form that the founding case takes on kernels of today, where reading statistics costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.fault import Fault, cgroup
from tests.zombies import zombie_farm

COUNT = 20_000
NAME = "zs-fault-slice"
SIZE = 400 << 20
SCRIPT = r"""
open(args[0] + "/cgroup.procs", "w").write("0")
fd, size = os.open(args[1], os.O_RDONLY), int(args[2])
os.posix_fadvise(fd, 0, size, os.POSIX_FADV_RANDOM)
wait_for_the_word()
while True:
    os.pread(fd, 128 << 10, random.randrange(size >> 17) << 17)
"""


@contextmanager
def place(directory: Path) -> Iterator[list[str]]:
    file = directory / "sparse"
    with file.open("wb") as made:
        made.truncate(SIZE)
    try:
        with zombie_farm(Path("/sys/fs/cgroup/memory"), NAME) as farm:
            farm.leak(COUNT)
            used = int((farm.parent / "memory.usage_in_bytes").read_text())
            (farm.parent / "memory.limit_in_bytes").write_text(str(used + (32 << 20)))
            with cgroup("memory", f"{NAME}/live") as live:
                yield [str(live), str(file), str(SIZE)]
    finally:
        file.unlink()


FAULT = Fault("zombie-memcg", "reader", SCRIPT, culprit="leaky", place=place)

if __name__ == "__main__":
    FAULT.demonstrate()
