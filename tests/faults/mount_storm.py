"""Three thousand mounts in a mount namespace of their own, and a reader of mountinfo that does nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.fault import Fault

SCRIPT = r"""
check(libc.unshare(0x00020000))
check(libc.mount(b"none", b"/", None, 0x44000, None))  # private, with all below
place = args[0].encode()
check(libc.mount(b"tmpfs", place, b"tmpfs", 0, None))
for number in range(3000):
    directory = place + b"/%d" % number
    os.mkdir(directory)
    check(libc.mount(place, directory, None, 0x1000, None))
wait_for_the_word()
while True:
    with open("/proc/self/mountinfo", "rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
"""


@contextmanager
def place(directory: Path) -> Iterator[list[str]]:
    mountpoint = directory / "mounts"
    mountpoint.mkdir(exist_ok=True)
    yield [str(mountpoint)]


FAULT = Fault("mount-storm", "mount-reader", SCRIPT, culprit="mount-reader", place=place)

if __name__ == "__main__":
    FAULT.demonstrate()
