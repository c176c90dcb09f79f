"""Random reads of a file six times as large as the memory limit of their cgroup.

The recorder looks at a cgroup every ten seconds, and only at those that it saw running; so the reader runs lightly
before the word comes, and after five bad seconds again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.fault import Fault, cgroup

NAME = "zs-fault-limit"
SIZE = 400 << 20
SCRIPT = r"""
import threading
open(args[0] + "/cgroup.procs", "w").write("0")
fd, size = os.open(args[1], os.O_RDONLY), int(args[2])
os.posix_fadvise(fd, 0, size, os.POSIX_FADV_RANDOM)
def lightly(until):
    while not until():
        end = time.monotonic() + 0.02
        while time.monotonic() < end:
            pass
        time.sleep(0.1)
begun = threading.Event()
threading.Thread(target=lightly, args=(begun.is_set,), daemon=True).start()
wait_for_the_word()
begun.set()
end = time.monotonic() + 5
while time.monotonic() < end:
    os.pread(fd, 128 << 10, random.randrange(size >> 17) << 17)
lightly(lambda: False)
"""


@contextmanager
def place(directory: Path) -> Iterator[list[str]]:
    file = directory / "sparse"
    with file.open("wb") as made:
        made.truncate(SIZE)
    try:
        with cgroup("memory", NAME, memory__limit_in_bytes=64 << 20) as limited:
            yield [str(limited), str(file), str(SIZE)]
    finally:
        file.unlink()


FAULT = Fault("memcg-limit-reclaim", "reader", SCRIPT, culprit=NAME, place=place, seconds=16.0)

if __name__ == "__main__":
    FAULT.demonstrate()
