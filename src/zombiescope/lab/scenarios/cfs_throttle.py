"""A busy loop in a cgroup that may use a tenth of a core."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import Needs, Scenario, Truth

SCRIPT = r"""
for directory in args:  # in both hierarchies, as container runtimes do
    open(directory + "/cgroup.procs", "w").write("0")
wait_for_the_word()
while True:
    pass
"""
NAME = "limited-to-a-tenth"


def prepare(sandbox: Sandbox) -> list[str]:
    directories = [sandbox.cgroup(controller, NAME) for controller in ("cpu", "memory")]
    sandbox.quota(NAME, 10_000, 100_000)
    return sorted({str(directory) for directory in directories})


SCENARIO = Scenario(
    id="cfs-throttle",
    title="A CPU limit stops a container",
    does="runs a busy loop in a cgroup that may use a tenth of a core",
    truth=Truth("cfs-throttle", "throttled", NAME),
    script=SCRIPT,
    frames="6.18: none, a stopped task does not run; nr_throttled in 48 of 48 periods; 6.1, emulated: the same",
    needs=Needs(controllers=("cpu",)),
    prepare=prepare,
    seconds=26.0,
    whole_node=True,
)
