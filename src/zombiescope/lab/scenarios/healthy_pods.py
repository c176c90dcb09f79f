"""A node of two hundred pods: sleepers, probes, and somebody who reads their statistics; nothing wrong.

An imitation: cgroups as kubelet makes them, two in each pod, with real processes in them. A reader called
`pod-stats` does what kubelet and its cAdvisor do: every ten seconds the statistics of each container, every second a
list of what is there; a probe in each pod every ten seconds, which is a process of its own. A real kubelet is in
kubelet-crashloop.
"""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import GB, Needs, Scenario, Truth

PODS = 200
SCRIPT = r"""
import hashlib, subprocess, uuid
count, roots = int(args[0]), args[1:]
EVERY_S = 10.0
STATS = ("memory.stat", "memory.usage_in_bytes", "memory.current", "cpuacct.usage", "cpu.stat", "pids.current")

def ident(text):
    return hashlib.sha256(text.encode()).hexdigest()

def make(path):
    for root in roots:
        place = root
        for name in path.split("/"):
            place += f"/{name}"
            if not os.path.isdir(place):
                os.mkdir(place)
                pass_down(os.path.dirname(place))

def pass_down(place):  # version 2: a cgroup with children passes its controllers on
    for name in ("memory", "cpu", "pids"):
        try:
            open(f"{place}/cgroup.subtree_control", "r+").write(f"+{name}")
        except OSError:
            pass

def start(path, *command):
    def enter():
        dies_with_its_parent()
        for root in roots:
            open(f"{root}/{path}/cgroup.procs", "w").write("0")
    return subprocess.Popen(command, preexec_fn=enter, stdout=subprocess.DEVNULL)

def below():
    for root in roots:
        for folder, _, files in os.walk(f"{root}/kubepods"):
            yield folder, files

pods = []
for number in range(count):
    pod = uuid.UUID(ident(f"pod {number}")[:32])
    kind = ("besteffort/", "burstable/", "")[number % 3]
    pause, main = (f"kubepods/{kind}pod{pod}/{ident(f'{what} {number}')}" for what in ("pause", "main"))
    for path, command in ((pause, ("sleep", "100000")), (main, ("sh", "-c", "while :; do sleep 5; done"))):
        make(path)
        start(path, *command)
    pods.append(main)
wait_for_the_word()

if os.fork() == 0:
    name_is("pod-stats")
    dies_with_its_parent()
    read_at = 0.0
    while True:
        began = time.monotonic()
        found = list(below())
        if began >= read_at:
            read_at = began + EVERY_S
            for folder, files in found:
                for name in STATS:
                    if name in files:
                        open(f"{folder}/{name}", "rb").read()
        time.sleep(max(0.0, began + 1 - time.monotonic()))

name_is("prober")
while True:
    for main in pods:
        probe = start(main, "sh", "-c", "test -e /proc/1/comm && cat /proc/loadavg")
        probe.wait()
        time.sleep(EVERY_S / count)
"""


def prepare(sandbox: Sandbox) -> list[str]:
    roots = {str(sandbox.cgroup(one, "pods", children=True)) for one in ("memory", "cpu") if sandbox.root_of(one)}
    return [str(PODS), *sorted(roots)]


SCENARIO = Scenario(
    id="healthy-pods",
    title=f"A node of {PODS} pods",
    does=f"makes {PODS} pods (cgroups with sleeping processes in them), probes each every ten seconds and reads their "
    "statistics, as kubelet does",
    truth=Truth(None),
    script=SCRIPT,
    comm="prober",
    seconds=60.0,
    needs=Needs(2 * GB, processes=2048, controllers=("memory",)),
    prepare=prepare,
    kind="healthy",
    of_the_node=True,
)
