"""One thread gives pages back while another computes: each time the other core is interrupted."""

from __future__ import annotations

from tests.faults.fault import Fault

SCRIPT = r"""
import hashlib, threading
threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha256", b"x", b"y", 1 << 30), daemon=True).start()
pages = 256
held = mmap.mmap(-1, pages << 12, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
at = ctypes.addressof(ctypes.c_char.from_buffer(held))
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
wait_for_the_word()
ctypes.memset(at, 1, pages << 12)
while True:
    libc.mprotect(at, pages << 12, 1)
    libc.mprotect(at, pages << 12, 3)
    ctypes.memset(at, 1, 1)
"""

FAULT = Fault("tlb-shootdown", "unmapper", SCRIPT, culprit="unmapper", seconds=5.0)

if __name__ == "__main__":
    FAULT.demonstrate()
