"""A service that crashes and is restarted for ever: each round leaves a memory cgroup that a cached page keeps."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import MB, Needs, Scenario, Truth
from zombiescope.lab.zombies import WALKER

ROUNDS = 6_000
SCRIPT = (
    WALKER
    + r"""
parent, file, back, rounds = args[0], args[1], args[2], int(args[3])
unit = parent + "/crasher.service"
fd = os.open(file, os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
def crash(number):  # as an init system does it: a cgroup, a process in it, which dies, and the cgroup goes
    os.mkdir(unit)
    child = os.fork()
    if child == 0:
        open(unit + "/cgroup.procs", "w").write("0")
        os.pread(fd, 1, number << 12)
        os._exit(1)
    os.waitpid(child, 0)
    os.rmdir(unit)
name_is("init")
rounds = as_many(crash, rounds)
walk_them()
keep_on(crash, 0.5, rounds)
"""
)


def prepare(sandbox: Sandbox) -> list[str]:
    """The cached file is on a disk, so that reclaim could drop its pages and free the zombies; nobody is short."""
    file = sandbox.sparse_file((ROUNDS + 1000) << 12)
    parent = sandbox.cgroup("memory", "system.slice", children=True)
    return [str(parent), str(file), str(parent), str(ROUNDS)]


SCENARIO = Scenario(
    id="zombie-crashloop",
    title="Zombie cgroups of a crash-looping service",
    does=f"makes and removes {ROUNDS:,} memory cgroups, each kept by one cached page, and repeatedly drops the "
    "machine's slab caches (vm.drop_caches=2), which walks them",
    truth=Truth("zombie-memcg", "walker", "crasher.service"),
    script=SCRIPT,
    comm="init",
    frames="6.18: mem_cgroup_iter 87% < drop_slab < drop_caches_sysctl_handler; 6.1, emulated: the same",
    needs=Needs(512 * MB, controllers=("memory",), files=("/proc/sys/vm/drop_caches",)),
    prepare=prepare,
    whole_node=True,
)
