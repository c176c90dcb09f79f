"""One thread changes pages while another computes: each time the other core is interrupted."""

from __future__ import annotations

from zombiescope.lab.scenario import MB, Needs, Scenario, Truth

SCRIPT = r"""
import hashlib, threading
# Each hash holds no lock of the interpreter and lasts for minutes.
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

SCENARIO = Scenario(
    id="tlb-shootdown",
    title="One thread's memory calls interrupt the others",
    does="changes the protection of 1 MB tens of thousands of times a second while a second thread computes",
    truth=Truth("tlb-shootdown", "unmapper", "unmapper"),
    script=SCRIPT,
    frames="6.18: smp_call_function_many_cond 25% in total, native_write_msr 14% < flush_tlb_mm_range",
    needs=Needs(256 * MB, cores=2),
)
