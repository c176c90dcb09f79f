"""Threads that touch new pages while others change the address space: page faults, and a lock that all want."""

from __future__ import annotations

from zombiescope.lab.scenario import MB, Needs, Scenario, Truth

SCRIPT = r"""
import threading
size = 64 << 20
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
def touch():
    while True:
        at = libc.mmap(None, size, 3, 0x22, -1, 0)
        libc.madvise(at, size, 15)  # no huge pages
        ctypes.memset(at, 1, size)
        libc.munmap(at, size)
wait_for_the_word()
for _ in range(3):
    threading.Thread(target=touch, daemon=True).start()
touch()
"""

SCENARIO = Scenario(
    id="page-fault-storm",
    title="Threads that fault without end, and their mmap lock",
    does="repeatedly maps, touches and unmaps 64 MB in each of four threads",
    truth=Truth("page-fault-storm", "toucher", "toucher"),
    script=SCRIPT,
    frames="6.18: handle_mm_fault 63% in total, exc_page_fault 16%, clear_page_erms 12%, rwsem_down_write_slowpath",
    needs=Needs(512 * MB),
    many=True,
)
