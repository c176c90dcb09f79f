"""A supervisor that never restarts itself while its containers come and go: nothing fails, and cgroups leak."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import MB, Needs, Scenario, Truth
from zombiescope.lab.zombies import WALKER

COUNT = 6_000
SCRIPT = (
    WALKER
    + r"""
import hashlib
parent, pins, count = args[0], args[1], int(args[2])
def contain(number):  # a container of a moment: its own id, a process that writes to shared memory, and the end
    child = f"{parent}/docker-{hashlib.sha256(str(number).encode()).hexdigest()}.scope"
    os.mkdir(child)
    job = os.fork()
    if job == 0:
        name_is("job")
        open(child + "/cgroup.procs", "w").write("0")
        fd = os.open(f"{pins}/{number}", os.O_CREAT | os.O_WRONLY, 0o600)
        os.write(fd, b"x")
        os._exit(0)
    os.waitpid(job, 0)
    os.rmdir(child)
count = as_many(contain, count)
walk_them()
keep_on(contain, 0.2, count)
"""
)


def prepare(sandbox: Sandbox) -> list[str]:
    parent = sandbox.cgroup("memory", "agent.service", children=True)
    return [str(parent), str(sandbox.in_memory()), str(COUNT)]


SCENARIO = Scenario(
    id="zombie-supervisor",
    title="Zombie cgroups of a supervisor that stays up",
    does=f"makes and removes {COUNT:,} memory cgroups named like containers, each kept by one page in /dev/shm, and "
    "repeatedly drops the machine's slab caches (vm.drop_caches=2), which walks them",
    truth=Truth("zombie-memcg", "walker", "supervisor"),
    script=SCRIPT,
    comm="supervisor",
    frames="6.18: mem_cgroup_iter 84% < drop_slab < drop_caches_sysctl_handler; 6.1, emulated: the same",
    needs=Needs(512 * MB, controllers=("memory",), files=("/proc/sys/vm/drop_caches",)),
    prepare=prepare,
    whole_node=True,
)
