"""Containers that come and go, one a second, as those of a busy CI or of cron jobs: each ends well; nothing wrong.

An imitation of a runtime: for each a cgroup of its own with the id of a container, namespaces of its own (mounts,
network, IPC, host name), a real program in them that works for a moment and ends with 0, and the cgroup removed. Real
runtimes are in docker-loop and kubelet-crashloop.
"""

from __future__ import annotations

from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import GB, Needs, Scenario, Truth

SCRIPT = r"""
import hashlib, subprocess
roots = args
NAMESPACES = 0x20000 | 0x4000000 | 0x8000000 | 0x40000000  # mounts, host name, IPC, network
WORK = "for word in a b c d e f g h; do echo $word | sed s/a/b/ | wc -c; done; sleep 0.5"

def contain(number):
    ident = hashlib.sha256(f"{os.getpid()} {number}".encode()).hexdigest()
    boxes = [f"{root}/docker/{ident}" for root in roots]
    for box in boxes:
        os.makedirs(box)
    def enter():
        dies_with_its_parent()
        for box in boxes:
            open(f"{box}/cgroup.procs", "w").write("0")
        check(libc.unshare(NAMESPACES))
    subprocess.run(["sh", "-c", WORK], preexec_fn=enter, stdout=subprocess.DEVNULL, check=True)
    for box in boxes:
        remove(box)

def remove(box):
    for _ in range(100):  # a moment after its last process has gone
        try:
            return os.rmdir(box)
        except OSError:
            time.sleep(0.01)

wait_for_the_word()
number = 0
while True:
    began = time.monotonic()
    contain(number)
    number += 1
    time.sleep(max(0.0, began + 1 - time.monotonic()))
"""


def prepare(sandbox: Sandbox) -> list[str]:
    roots = {str(sandbox.cgroup(one, "boxes", children=True)) for one in ("memory", "cpu") if sandbox.root_of(one)}
    return sorted(roots)


SCENARIO = Scenario(
    id="healthy-containers",
    title="Containers come and go, one a second",
    does="makes a container every second (with its own cgroup and namespaces), runs a short program in it, and removes "
    "it, as a runtime does",
    truth=Truth(None),
    script=SCRIPT,
    comm="runtime",
    seconds=60.0,
    needs=Needs(1 * GB, processes=256, controllers=("memory",)),
    prepare=prepare,
    kind="healthy",
    of_the_node=True,
)
