"""A process with 200 MB that forks children which end at once: page tables are copied and dropped all the time."""

from __future__ import annotations

from tests.faults.fault import Fault

SCRIPT = r"""
size = 200 << 20
held = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(held)), 1, size)
wait_for_the_word()
while True:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
"""

FAULT = Fault("fork-storm", "forker", SCRIPT, culprit="forker", cpu=1)

if __name__ == "__main__":
    FAULT.demonstrate()
