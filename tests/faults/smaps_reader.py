"""An agent that reads smaps_rollup of a process with 1.5 GB, over and over: about 20 ms of kernel a read."""

from __future__ import annotations

from tests.faults.fault import Fault

SCRIPT = r"""
size = 1536 << 20
held = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
reading, writing = os.pipe()
holder = os.fork()
if holder == 0:
    open("/proc/self/comm", "w").write("training")
    libc.prctl(1, 9)  # dies with its parent
    ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(held)), 1, size)
    os.write(writing, b"x")
    time.sleep(1000)
os.read(reading, 1)
wait_for_the_word()
while True:
    with open(f"/proc/{holder}/smaps_rollup") as file:
        file.read()
"""

FAULT = Fault("smaps-reader", "smaps-agent", SCRIPT, culprit="smaps-agent", seconds=6.0)

if __name__ == "__main__":
    FAULT.demonstrate()
