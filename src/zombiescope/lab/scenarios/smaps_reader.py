"""An agent that reads smaps_rollup of a process with 2 GB, over and over: about 28 ms of kernel a read."""

from __future__ import annotations

from zombiescope.lab.scenario import GB, MB, Needs, Scenario, Truth

SCRIPT = r"""
size = 2048 << 20
held = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
held.madvise(15)  # no huge pages: a walk sees 4 kB each, as in a process whose memory came piece by piece
reading, writing = os.pipe()
holder = os.fork()
if holder == 0:
    name_is("training")
    dies_with_its_parent()
    ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(held)), 1, size)
    os.write(writing, b"x")
    time.sleep(1000)
os.read(reading, 1)
wait_for_the_word()
while True:
    with open(f"/proc/{holder}/smaps_rollup") as file:
        file.read()
"""

SCENARIO = Scenario(
    id="smaps-reader",
    title="An agent reads smaps of a large process",
    does="fills 2 GB of memory, and repeatedly reads smaps_rollup of that process",
    truth=Truth("smaps-reader", "smaps-agent", "smaps-agent"),
    script=SCRIPT,
    frames="6.18: smaps_pte_range 39%, vm_normal_page 32%, smaps_account 16% < show_smaps_rollup",
    needs=Needs(2 * GB + 256 * MB),
)
