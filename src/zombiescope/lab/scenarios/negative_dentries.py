"""A million names that do not exist in one directory, and a watcher that is set up on it again and again."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import MB, Needs, Scenario, Truth

COUNT = 1_000_000
SCRIPT = r"""
place, count = args[0], int(args[1])
for number in range(count):
    os.access(f"{place}/missing-{number}", os.F_OK)
fd = libc.inotify_init1(0)
wait_for_the_word()
while True:  # IN_MODIFY: an event of children, for which each of them is marked
    watch = libc.inotify_add_watch(fd, place.encode(), 0x2)
    libc.inotify_rm_watch(fd, watch)
"""


def prepare(sandbox: Sandbox) -> list[str]:
    """Not on a tmpfs, which forgets such names at once."""
    return [str(sandbox.directory()), str(COUNT)]


SCENARIO = Scenario(
    id="negative-dentries",
    title="A million names that do not exist",
    does=f"asks for {COUNT:,} files that do not exist, and repeatedly watches their directory",
    truth=Truth("negative-dentries", "watcher", "watcher"),
    script=SCRIPT,
    frames="6.18: fsnotify_set_children_dentry_flags 98% < fsnotify_add_mark_locked < inotify_add_watch",
    needs=Needs(1024 * MB),
    prepare=prepare,
)
