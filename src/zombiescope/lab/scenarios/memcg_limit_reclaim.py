"""Random reads of a file six times as large as the memory limit of their cgroup."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import MB, Needs, Scenario, Truth

SIZE = 400 * MB
LIMIT = 64 * MB
SCRIPT = r"""
open(args[0] + "/cgroup.procs", "w").write("0")
fd, size = os.open(args[1], os.O_RDONLY), int(args[2])
os.posix_fadvise(fd, 0, size, os.POSIX_FADV_RANDOM)
wait_for_the_word()
while True:
    os.pread(fd, 128 << 10, random.randrange(size >> 17) << 17)
"""


def prepare(sandbox: Sandbox) -> list[str]:
    limited = sandbox.cgroup("memory", "limited")
    sandbox.limit_memory("limited", LIMIT)
    file = sandbox.sparse_file(SIZE)
    return [str(limited), str(file), str(SIZE)]


SCENARIO = Scenario(
    id="memcg-limit-reclaim",
    title="A cgroup at its memory limit",
    does=f"reads a sparse file of {SIZE >> 20} MB at random in a cgroup that may use {LIMIT >> 20} MB",
    truth=Truth("memcg-limit-reclaim", "reader", "limited"),
    script=SCRIPT,
    comm="reader",
    frames="6.18: try_to_free_mem_cgroup_pages 22 to 28% in total < try_charge_memcg; failcnt 400,000 a second; "
    "6.1, emulated: the same",
    needs=Needs(256 * MB),
    prepare=prepare,
    seconds=22.0,
    whole_node=True,
)
