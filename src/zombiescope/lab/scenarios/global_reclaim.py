"""A file larger than the machine's memory is read: kswapd and the reader take pages from everybody."""

from __future__ import annotations

from zombiescope.lab.place import Place
from zombiescope.lab.scenario import Needs, Scenario, Truth

SCRIPT = r"""
fd, size = os.open(args[0], os.O_RDONLY), int(args[1])
os.posix_fadvise(fd, 0, size, os.POSIX_FADV_RANDOM)
held = []
def hold(share):  # memory that cannot be dropped: without swap only the cache is left to take from
    want = int(available() * share)
    held.append(mmap.mmap(-1, want, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(held[-1])), 1, want)
def available():
    for line in open("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
hold(0.5)
for at in range(0, available(), 1 << 20):  # no free memory any more
    os.pread(fd, 1 << 20, at)
wait_for_the_word()
while True:
    os.pread(fd, 128 << 10, random.randrange(size >> 17) << 17)
"""


def prepare(place: Place) -> list[str]:
    with open("/proc/meminfo") as lines:
        total = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemTotal:"))
    file = place.directory() / "sparse"
    with file.open("wb") as made:
        made.truncate(2 * total)
    return [str(file), str(2 * total)]


SCENARIO = Scenario(
    id="global-reclaim",
    title="The whole machine is short of memory",
    does="fills half of the memory that is left and reads a sparse file of twice the machine's memory at random",
    truth=Truth("global-reclaim", "", "reader"),
    script=SCRIPT,
    comm="reader",
    frames="6.1: shrink_node < balance_pgdat (kswapd0), shrink_node < try_to_free_pages < __alloc_pages",
    needs=Needs(64 << 40, node=True),
    prepare=prepare,
    seconds=30.0,
)
