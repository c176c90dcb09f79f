"""A swap file, and a task that goes through more memory than its cgroup may have."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import MB, Needs, Scenario, Truth

LIMIT = 96 * MB
SIZE = 224 * MB
SWAP = 320 * MB
SCRIPT = r"""
import struct
place, size, swap = args[0], int(args[1]), int(args[2])
path = place + "/swap"
with open(path, "wb") as file:
    file.write(b"\0" * 1024 + struct.pack("<III", 1, (swap >> 12) - 1, 0) + b"\0" * (4096 - 1036 - 10) + b"SWAPSPACE2")
    for _ in range((swap >> 20)):
        file.write(b"\0" * (1 << 20))
    file.truncate(swap)
    os.fsync(file.fileno())
os.chmod(path, 0o600)
memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
check(libc.swapon(path.encode(), 0))  # the clean-up switches it off: it is in a directory with our name
wait_for_the_word()
while True:
    for at in range(0, size, 4096):
        memory[at] = 1 + at % 251
"""


def prepare(sandbox: Sandbox) -> list[str]:
    return [str(sandbox.directory()), str(SIZE), str(SWAP)]


SCENARIO = Scenario(
    id="swap-thrash",
    title="What is needed does not fit into memory, and there is swap",
    does=f"switches on a swap file of {SWAP // MB} MB for as long as it lasts, and goes through {SIZE // MB} MB in a "
    f"cgroup that may have {LIMIT // MB} MB",
    truth=Truth("swap-thrash", "thrasher", "thrasher"),
    script=SCRIPT,
    frames="6.18: do_swap_page > swap_read_folio below asm_exc_page_fault, shrink_folio_list > pageout",
    seconds=50.0,
    needs=Needs(LIMIT, files=("/proc/swaps",), controllers=("memory",)),
    prepare=prepare,
)
