"""A pod that crashes for ever under a real kubelet: an agent that makes cgroups for its tasks, and leaves zombies."""

from __future__ import annotations

from zombiescope.lab import kubernetes_build
from zombiescope.lab.kubernetes import PROGRAMS
from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import GB, RUNTIMES, Needs, Scenario, Truth
from zombiescope.lab.zombies import WALKER

TASKS = 300
LEAST = 1_100
MADE_S = 180
IMAGE = "registry.local/ecs-agent:1.2"
AGENT = """\
own=/sys/fs/cgroup
if [ -d $own/memory ]; then own=$own/memory; else
    mkdir $own/agent; echo 0 >$own/agent/cgroup.procs; echo +memory >$own/cgroup.subtree_control
fi
number=0
while [ $number -lt {tasks} ]; do
    mkdir $own/task-$number
    read -r name </proc/sys/kernel/random/uuid
    sh -c "echo 0 >$own/task-$number/cgroup.procs; echo state >/data/$name"
    rmdir $own/task-$number
    number=$((number + 1))
done
exit 7
"""
"""For each task a cgroup below the container's own, and a file that outlives it; then it crashes."""
SCRIPT = (
    WALKER
    + r"""
from pathlib import Path
from zombiescope.lab.isolation import enter_own_namespaces, tmpfs
from zombiescope.lab.kubernetes import cluster, container, pod
place, root, image, agent, least, made_s = Path(args[0]), args[1], args[2], args[3], int(args[4]), float(args[5])
enter_own_namespaces()
tmpfs(place / "pins")
with cluster(place, cgroup_root=root) as api:
    api.load(image)
    api.create("pods", pod("steady", container("server", image, ["sleep", "10000"])))
    pins = {"name": "state", "hostPath": {"path": str(place / "pins")}}
    mounts = [{"name": "state", "mountPath": "/data"}]
    leaky = container("agent", image, ["sh", "-c", agent], securityContext={"privileged": True}, volumeMounts=mounts)
    api.create("pods", pod("leaky", leaky, volumes=[pins]))
    end = time.monotonic() + made_s
    while len(os.listdir(place / "pins")) < least and time.monotonic() < end:
        time.sleep(0.2)
    walk_them()
    time.sleep(1000)
"""
)


def prepare(sandbox: Sandbox) -> list[str]:
    """kubelet makes kubepods below the scenario's own cgroup: one that the node has is not touched."""
    sandbox.in_every_hierarchy()
    arguments = [str(sandbox.directory()), f"/{sandbox.name}", IMAGE, AGENT.format(tasks=TASKS)]
    return [*arguments, str(LEAST), str(MADE_S)]


SCENARIO = Scenario(
    id="kubelet-crashloop",
    title="Zombie cgroups of a crash-looping pod",
    does="starts a private Kubernetes (etcd, kube-apiserver, containerd, kubelet), in which a pod crashes and is "
    f"restarted, and each time makes and removes {TASKS} memory cgroups that a page in a tmpfs keeps; and "
    "repeatedly drops the machine's slab caches (vm.drop_caches=2), which walks them",
    truth=Truth("zombie-memcg", "walker", "leaky", IMAGE, "default/leaky", RUNTIMES),
    script=SCRIPT,
    comm="starter",
    frames="6.18: mem_cgroup_iter < drop_slab < drop_caches_sysctl_handler",
    seconds=30,
    ready_s=MADE_S + 120,
    needs=Needs(
        3 * GB,
        processes=4096,
        programs=(*PROGRAMS, *kubernetes_build.NEEDED),
        controllers=("memory",),
        files=("/proc/sys/vm/drop_caches",),
    ),
    build=kubernetes_build.binaries,
    prepare=prepare,
    many=True,
)
