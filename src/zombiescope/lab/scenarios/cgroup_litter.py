"""Six thousand empty memory cgroups that nobody removed, and a walker that lists and opens all of them."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import MB, Needs, Scenario, Truth

COUNT = 6_000
SCRIPT = r"""
parent, count = args[0], int(args[1])
litterer = os.fork()
if litterer == 0:
    name_is("litterer")
    dies_with_its_parent()
    for number in range(count):
        os.mkdir(f"{parent}/run-r{number:08x}.scope")
    os._exit(0)
os.waitpid(litterer, 0)
wait_for_the_word()
while True:
    for entry in os.scandir(parent):
        if entry.is_dir():
            os.close(os.open(entry.path + "/cgroup.procs", os.O_RDONLY))
"""


def prepare(sandbox: Sandbox) -> list[str]:
    return [str(sandbox.cgroup("memory", "litter", children=True)), str(COUNT)]


SCENARIO = Scenario(
    id="cgroup-litter",
    title="Live cgroups that were not removed",
    does=f"makes {COUNT:,} empty memory cgroups, and repeatedly lists and opens them",
    truth=Truth("cgroup-litter", "scanner", "litterer"),
    script=SCRIPT,
    frames="6.18: kernfs_fop_readdir 33% in total, path_openat 33%, rb_next 7%, kernfs_dop_revalidate; "
    "6.1, emulated: the same",
    needs=Needs(512 * MB),
    prepare=prepare,
    whole_node=True,
)
