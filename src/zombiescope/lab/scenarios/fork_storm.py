"""A process with 200 MB that starts programs which end at once: page tables are copied and dropped all the time."""

from __future__ import annotations

from zombiescope.lab.scenario import MB, Needs, Scenario, Truth

SCRIPT = r"""
size = 200 << 20
held = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(held)), 1, size)
wait_for_the_word()
while True:
    child = os.fork()
    if child == 0:
        try:
            os.execv("/bin/true", ["true"])
        finally:
            os._exit(0)
    os.waitpid(child, 0)
"""

SCENARIO = Scenario(
    id="fork-storm",
    title="A storm of short processes",
    does="starts hundreds of processes a second from one with 200 MB, on one core, one after the other",
    truth=Truth("fork-storm", "forker", "forker"),
    script=SCRIPT,
    frames="6.18: copy_page_range 33%, unmap_page_range 29% < dup_mmap < copy_process, exec_mmap",
    needs=Needs(512 * MB, files=("/bin/true",)),
    cpu=0,
)
