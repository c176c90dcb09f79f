"""A live child of a parent that is at its limit and full of zombies: every page that it wants walks all of them."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import MB, Needs, Scenario, Truth
from zombiescope.lab.zombies import MAKER

COUNT = 10_000
LIMIT = 300 * MB
SCRIPT = (
    MAKER
    + r"""
parent, pins, back, count, file, size = args[:3] + [int(args[3]), args[4], int(args[5])]
leak_all(parent, pins, back, count)
os.mkdir(parent + "/live")
open(parent + "/live/cgroup.procs", "w").write("0")
fd = os.open(file, os.O_RDONLY)
os.posix_fadvise(fd, 0, size, os.POSIX_FADV_RANDOM)
wait_for_the_word()
while True:
    os.pread(fd, 128 << 10, random.randrange(size >> 17) << 17)
"""
)


def prepare(sandbox: Sandbox) -> list[str]:
    parent = sandbox.cgroup("memory", "limited", children=True)
    back = sandbox.cgroup("memory", "back")
    sandbox.limit_memory("limited", LIMIT)
    file = sandbox.sparse_file(2 * LIMIT)
    return [str(parent), str(sandbox.in_memory()), str(back), str(COUNT), str(file), str(2 * LIMIT)]


SCENARIO = Scenario(
    id="zombie-limit",
    title="A limited cgroup full of zombies",
    does=f"makes and removes {COUNT:,} memory cgroups below one that may use {LIMIT >> 20} MB, each kept by one page "
    "in /dev/shm, and reads a file of twice that size in there, which makes the kernel walk them",
    truth=Truth("zombie-memcg", "reader", "leaky"),
    script=SCRIPT,
    comm="reader",
    frames="6.18: mem_cgroup_iter 40%, shrink_lruvec 23% < shrink_node < try_to_free_mem_cgroup_pages < "
    "try_charge_memcg; "
    "6.1, emulated: the same",
    needs=Needs(512 * MB, controllers=("memory",)),
    prepare=prepare,
    seconds=15.0,
    whole_node=True,
)
