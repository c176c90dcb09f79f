"""A container that is killed at its memory limit and started again, for ever: restarts and no CPU to speak of."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import MB, Needs, Scenario, Truth

LIMIT = 64 * MB
SCRIPT = r"""
box, size = args[0], int(args[1])
wait_for_the_word()
while True:
    if os.fork() == 0:
        name_is("grower")
        dies_with_its_parent()
        open(box + "/cgroup.procs", "w").write("0")
        memory = mmap.mmap(-1, 4 * size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for place in range(0, 4 * size, 4096):
            memory[place] = 1
        os._exit(0)
    os.wait()
    time.sleep(0.5)
"""


def prepare(sandbox: Sandbox) -> list[str]:
    box = sandbox.cgroup("memory", "limited")
    sandbox.limit_memory("limited", LIMIT)
    return [str(box), str(LIMIT)]


SCENARIO = Scenario(
    id="oom-loop",
    title="Killed at the memory limit, and restarted",
    does=f"allocates more than {LIMIT // MB} MB in a cgroup that may use no more, twice a second: the kernel kills it "
    "each time, and logs it",
    truth=Truth("oom-kill", "", "limited"),
    script=SCRIPT,
    comm="restarter",
    frames="6.18: none to speak of; mem_cgroup_out_of_memory, and lines of the kernel log about each kill; "
    "6.1, emulated: the same",
    needs=Needs(256 * MB, controllers=("memory",), files=("/dev/kmsg",)),
    prepare=prepare,
    whole_node=True,
)
