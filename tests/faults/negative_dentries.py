"""Half a million names that do not exist in one directory, and a watcher that is set up on it again and again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.fault import Fault

SCRIPT = r"""
place = args[0]
for number in range(500_000):
    os.access(f"{place}/missing-{number}", os.F_OK)
fd = libc.inotify_init1(0)
wait_for_the_word()
while True:  # IN_MODIFY: an event of children, for which each of them is marked
    watch = libc.inotify_add_watch(fd, place.encode(), 0x2)
    libc.inotify_rm_watch(fd, watch)
"""


@contextmanager
def place(directory: Path) -> Iterator[list[str]]:
    """Not on tmpfs, which forgets such names at once."""
    watched = directory / "watched"
    watched.mkdir(exist_ok=True)
    try:
        yield [str(watched)]
    finally:
        shutil.rmtree(watched, ignore_errors=True)


FAULT = Fault("negative-dentries", "watcher", SCRIPT, culprit="watcher", place=place)

if __name__ == "__main__":
    FAULT.demonstrate()
