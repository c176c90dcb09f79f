"""Six thousand empty memory cgroups that nobody removed, and a walker that lists and opens all of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.fault import Fault

COUNT = 6_000
SCRIPT = r"""
parent = args[0]
wait_for_the_word()
while True:
    for entry in os.scandir(parent):
        if entry.is_dir():
            os.close(os.open(entry.path + "/cgroup.procs", os.O_RDONLY))
"""


@contextmanager
def place(directory: Path) -> Iterator[list[str]]:
    parent = Path("/sys/fs/cgroup/memory/zs-fault-litter")
    parent.mkdir(exist_ok=True)
    children = [parent / f"run-r{number:08x}.scope" for number in range(COUNT)]
    try:
        for child in children:
            child.mkdir(exist_ok=True)
        yield [str(parent)]
    finally:
        for child in children:
            if child.exists():
                child.rmdir()
        parent.rmdir()


FAULT = Fault("cgroup-litter", "scanner", SCRIPT, culprit="zs-fault-litter", place=place)

if __name__ == "__main__":
    FAULT.demonstrate()
