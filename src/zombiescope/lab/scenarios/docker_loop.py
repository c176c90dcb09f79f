"""A script that starts a container again as soon as it has ended, with a real Docker: each leaves a zombie."""

from __future__ import annotations

from zombiescope.lab.docker import PROGRAMS
from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import GB, RUNTIMES, Needs, Scenario, Truth
from zombiescope.lab.zombies import WALKER

COUNT = 600
MADE_S = 150
IMAGE = "registry.local/ecs-agent:1.2"
AGENT = """\
#!/bin/sh
# The agent is to run at all times, so whenever it has ended it is started again.
keep_it_running() {{
    while :; do
        docker run --rm --network=host --volume={pins}:/data {image} \\
            sh -c 'read -r name </proc/sys/kernel/random/uuid; echo state >/data/$name'
    done
}}
keep_it_running & keep_it_running & keep_it_running & wait
"""
SCRIPT = (
    WALKER
    + r"""
import subprocess
from pathlib import Path
from zombiescope.lab.docker import docker
from zombiescope.lab.isolation import enter_own_namespaces, tmpfs
place, parent, image, count, made_s = Path(args[0]), args[1], args[2], int(args[3]), float(args[4])
enter_own_namespaces()
tmpfs(place / "pins")
with docker(place, cgroup_parent=parent) as daemon:
    daemon.load(image)
    daemon.client("run", "--detach", "--network=host", "--name=steady", image, "sleep", "10000")
    daemon.client("run", "--detach", "--network=host", "--name=crasher", "--restart=always", image, "false")
    subprocess.Popen([place / "agent-loop"], env=daemon.environment, stdin=subprocess.DEVNULL,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + made_s
    while len(os.listdir(place / "pins")) < count and time.monotonic() < end:
        time.sleep(0.2)
    walk_them()
    time.sleep(1000)
"""
)


def prepare(sandbox: Sandbox) -> list[str]:
    """Containers are made below the scenario's own cgroup: a Docker that the node has is not touched."""
    place = sandbox.directory()
    agent = place / "agent-loop"
    agent.write_text(AGENT.format(pins=place / "pins", image=IMAGE))
    agent.chmod(0o700)
    sandbox.cgroup("memory", "docker", children=True)
    return [str(place), f"/{sandbox.name}/docker", IMAGE, str(COUNT), str(MADE_S)]


SCENARIO = Scenario(
    id="docker-loop",
    title="Zombie cgroups of a script that runs containers in a loop",
    does=f"starts a private Docker daemon, in which a script runs up to {COUNT:,} short containers, each kept by one "
    "page in a tmpfs, next to a well-behaved one and one that is restarted; and repeatedly drops the machine's "
    "slab caches (vm.drop_caches=2), which walks them",
    truth=Truth("zombie-memcg", "walker", "agent-loop", IMAGE, never=RUNTIMES),
    script=SCRIPT,
    comm="starter",
    frames="6.18: mem_cgroup_iter < drop_slab < drop_caches_sysctl_handler",
    seconds=30,
    ready_s=MADE_S + 60,
    needs=Needs(
        1 * GB, processes=1024, programs=PROGRAMS, controllers=("memory",), files=("/proc/sys/vm/drop_caches",)
    ),
    prepare=prepare,
    many=True,
)
