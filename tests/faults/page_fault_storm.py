"""A program that maps 64 MB, touches every page and gives it back, for ever."""

from __future__ import annotations

from tests.faults.fault import Fault

SCRIPT = r"""
size = 64 << 20
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
wait_for_the_word()
while True:
    at = libc.mmap(None, size, 3, 0x22, -1, 0)
    libc.madvise(at, size, 15)  # no huge pages
    ctypes.memset(at, 1, size)
    libc.munmap(at, size)
"""

FAULT = Fault("page-fault-storm", "toucher", SCRIPT, culprit="toucher")

if __name__ == "__main__":
    FAULT.demonstrate()
