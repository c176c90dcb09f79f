"""A dataset is read through the page cache, with read() and through mappings, in order and at random; nothing wrong.

Each pass reads the file from the disk: its cached pages are given back before. The reader adds everything up, as a
decoder would look at every byte.
"""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import GB, MB, Needs, Scenario, Truth

SIZE = 384 * MB
SCRIPT = r"""
import zlib
place, size = args[0], int(args[1])
path, page = f"{place}/dataset", mmap.PAGESIZE
block = os.urandom(1 << 20)
with open(path, "wb", buffering=0) as file:
    for _ in range(size >> 20):
        file.write(block)
    os.fsync(file.fileno())

def buffered(fd):
    os.lseek(fd, 0, os.SEEK_SET)
    while chunk := os.read(fd, 1 << 20):
        zlib.crc32(chunk)

def mapped(fd):
    with mmap.mmap(fd, size, prot=mmap.PROT_READ) as room:
        room.madvise(mmap.MADV_SEQUENTIAL)
        for at in range(0, size, 1 << 20):
            zlib.crc32(room[at:at + (1 << 20)])

def at_random(fd):
    with mmap.mmap(fd, size, prot=mmap.PROT_READ) as room:
        room.madvise(mmap.MADV_RANDOM)
        for _ in range(size // page // 8):
            at = random.randrange(size // page) * page
            zlib.crc32(room[at:at + page])

wait_for_the_word()
for number, ways in enumerate(((buffered, buffered, at_random), (mapped, at_random, mapped))):
    if os.fork() == 0:
        name_is(("file-reader", "map-reader")[number])
        dies_with_its_parent()
        fd = os.open(path, os.O_RDONLY)
        while True:
            for way in ways:
                way(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
time.sleep(100000)
"""


def prepare(sandbox: Sandbox) -> list[str]:
    return [str(sandbox.directory()), str(SIZE)]


SCENARIO = Scenario(
    id="healthy-reading",
    title="A dataset is read through the page cache",
    does=f"writes a file of {SIZE >> 20} MB to the disk of temporary files, and two processes read it repeatedly, with "
    "read() and through mappings",
    truth=Truth(None),
    script=SCRIPT,
    comm="dataset",
    seconds=60.0,
    needs=Needs(2 * GB),
    prepare=prepare,
    kind="healthy",
)
