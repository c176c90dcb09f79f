"""Zombie memory cgroups that pages of a tmpfs keep, and somebody who reclaims memory by hand, which walks them all."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import MB, Needs, Scenario, Truth
from zombiescope.lab.zombies import MAKER

COUNT = 10_000
SCRIPT = (
    MAKER
    + r"""
parent, pins, back, reclaim, count = args[:4] + [int(args[4])]
leak_all(parent, pins, back, count)
wait_for_the_word()
while True:
    try:
        with open(reclaim, "w") as file:
            file.write("1M")
    except OSError:  # version 2 says so when it found less
        pass
"""
)


def prepare(sandbox: Sandbox) -> list[str]:
    parent = sandbox.cgroup("memory", "jobs", children=True)
    back = sandbox.cgroup("memory", "back")
    return [str(parent), str(sandbox.in_memory()), str(back), str(sandbox.reclaim_file("jobs")), str(COUNT)]


SCENARIO = Scenario(
    id="zombie-tmpfs",
    title="Zombie cgroups kept by files in /dev/shm",
    does=f"makes and removes {COUNT:,} memory cgroups, each kept by one page in /dev/shm, and repeatedly reclaims "
    "memory from their parent, which walks them",
    truth=Truth("zombie-memcg", "walker", "leaky"),
    script=SCRIPT,
    frames="6.18: mem_cgroup_iter 37%, shrink_node 27%, shrink_lruvec 25% < mem_cgroup_force_empty_write; "
    "6.1, emulated: the same",
    needs=Needs(512 * MB, controllers=("memory",)),
    prepare=prepare,
    whole_node=True,
)
