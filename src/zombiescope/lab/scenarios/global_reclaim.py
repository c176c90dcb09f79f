"""A file larger than the machine's memory is read through maps: kswapd and the readers take pages from everybody."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import Needs, Scenario, Truth

SCRIPT = r"""
fd, size = os.open(args[0], os.O_RDONLY), int(args[1])
def available():
    for line in open("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
# Half of it is memory that cannot be dropped: without swap only the file is left to take from.
held = mmap.mmap(-1, available() // 2, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(held)), 1, len(held))
pages = mmap.mmap(fd, size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
pages.madvise(1)  # random: one page a fault
def read():
    # All go through the same pages at about the same time, so that each page has several owners to be taken from.
    while True:
        for at in range(0, size, 4 << 20):
            pages[at : at + (4 << 20) : 4096]
for at in range(0, available(), 1 << 20):  # no free memory any more
    os.pread(fd, 1 << 20, at)
wait_for_the_word()
for _ in range(1):
    if os.fork() == 0:
        dies_with_its_parent()
        break
read()
"""


def prepare(sandbox: Sandbox) -> list[str]:
    with open("/proc/meminfo") as lines:
        total = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemTotal:"))
    file = sandbox.sparse_file(2 * total)
    return [str(file), str(2 * total)]


SCENARIO = Scenario(
    id="global-reclaim",
    title="The whole machine is short of memory",
    does="fills half of the memory that is left, and reads a sparse file of twice the machine's memory, twice",
    truth=Truth("global-reclaim", "", "reader"),
    script=SCRIPT,
    comm="reader",
    frames="6.1, emulated: shrink_folio_list 27% in total, below balance_pgdat in kswapd0 and do_try_to_free_pages",
    needs=Needs(64 << 40, node=True),
    prepare=prepare,
    seconds=50.0,
)
