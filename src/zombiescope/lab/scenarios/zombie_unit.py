"""The founding case with a real systemd: a unit that crashes, is started again, and leaves zombies each time."""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import MB, Needs, Scenario, Truth
from zombiescope.lab.zombies import WALKER

CONTAINERS = 200
LEAST = 1_500
UNIT = """\
[Unit]
Description=The crash-looping container agent of zombiescope's lab
StartLimitIntervalSec=0
[Service]
Delegate=yes
MemoryMax=512M
TasksMax=64
ExecStart={python} {agent}
Restart=always
RestartSec=100ms
"""
AGENT = """\
import os, sys
here = next(line.strip() for line in open("/proc/self/cgroup") if {controller!r} in line).split(":", 2)[2]
own, unified = {mount!r} + here, {unified}
def move(place):
    with open(place + "/cgroup.procs", "w") as file:
        file.write("0")
if unified:  # a cgroup that has children may hold no process
    os.mkdir(own + "/agent")
    move(own + "/agent")
    with open(own + "/cgroup.subtree_control", "w") as file:
        file.write("+memory")
back = own + "/agent" if unified else own
for number in range({containers}):
    container = f"{{own}}/container-{{number:04d}}"
    os.mkdir(container)
    move(container)
    with open(f"{pins}/{{os.getpid()}}-{{number}}", "w") as file:
        file.write("x")
    move(back)
    os.rmdir(container)
sys.exit(5)
"""
SCRIPT = (
    WALKER
    + r"""
import subprocess
unit, pins, least = args[0], args[1], int(args[2])
subprocess.run(["systemctl", "daemon-reload"], check=True)
subprocess.run(["systemctl", "start", "--no-block", unit], check=True)
end = time.monotonic() + 90
while len(os.listdir(pins)) < least and time.monotonic() < end:
    time.sleep(0.2)
walk_them()
time.sleep(1000)
"""
)


def prepare(sandbox: Sandbox) -> list[str]:
    """The unit is in /run, so that it is gone after a reboot, whatever happens here."""
    memory = sandbox.root_of("memory")
    if memory is None:
        raise RuntimeError("no cgroup hierarchy has the controller memory")
    unified = "memory" in sandbox.unified
    pins, agent = sandbox.in_memory(), sandbox.directory() / "agent"
    agent.write_text(
        AGENT.format(
            mount=str(memory.parent), unified=unified, controller="0::" if unified else ":memory:",
            containers=CONTAINERS, pins=pins,
        )
    )  # fmt: skip
    unit = sandbox.unit("agent", UNIT.format(python="/usr/bin/python3", agent=agent))
    return [unit, str(pins), str(LEAST)]


SCENARIO = Scenario(
    id="zombie-unit",
    title="Zombie cgroups of a crash-looping systemd unit",
    does=f"starts a separate systemd unit that makes and removes {CONTAINERS} memory cgroups, each kept by one tmpfs "
    "page, crashes and is restarted; and repeatedly drops the machine's slab caches (vm.drop_caches=2), which walks "
    "them",
    truth=Truth("zombie-memcg", "walker", "-agent.service"),
    script=SCRIPT,
    comm="starter",
    frames="6.1, emulated: mem_cgroup_iter < drop_slab < drop_caches_sysctl_handler",
    seconds=30,
    needs=Needs(
        512 * MB,
        programs=(("/usr/bin/python3", "python3"),),
        controllers=("memory",),
        files=("/proc/sys/vm/drop_caches",),
        systemd=True,
    ),
    prepare=prepare,
    whole_node=True,
)
