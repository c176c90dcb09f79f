"""A process in a cgroup namespace of its own, as a container runtime gives it to a pod on cgroup2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Needs

from zombiescope.kernel import cgroup

pytestmark = pytest.mark.kernel

ASK = """
import json, sys
from zombiescope.kernel import cgroup_namespace, process
number = int(sys.argv[1])
answers = {pid: cgroup_namespace.membership(pid)[number][1] for pid in sys.argv[2:]}
raw = open(f"/proc/{sys.argv[2]}/cgroup").read()
print(json.dumps({"answers": answers, "raw": raw, "known": cgroup_namespace.sees_node_paths(number),
                  "process": process.read(int(sys.argv[2])).cgroups[number]}))
"""


@pytest.fixture
def pod(needs: Needs) -> Iterator[tuple[cgroup.Hierarchy, Path]]:
    """A pod of two containers, three levels below the root of cgroup2."""
    needs.root()
    needs.program("unshare")
    hierarchy = next((one for one in cgroup.hierarchies() if one.version == 2 and one.whole), None)
    if hierarchy is None or hierarchy.mount is None:
        needs.lack("needs cgroup2, mounted whole")
        raise AssertionError
    slice_ = Path(hierarchy.mount) / f"zs-kubepods-{uuid.uuid4().hex[:8]}.slice"
    made = [slice_, slice_ / "pod1.slice", slice_ / "pod1.slice/agent.scope", slice_ / "pod1.slice/beside.scope"]
    for directory in made:
        directory.mkdir()
    yield hierarchy, slice_ / "pod1.slice"
    for directory in reversed(made):
        directory.rmdir()


def sleeper_in(directory: Path) -> subprocess.Popen[bytes]:
    enter = ["sh", "-c", f"echo $$ > {directory}/cgroup.procs && exec sleep 60"]
    child = subprocess.Popen(enter)
    while str(child.pid) not in (directory / "cgroup.procs").read_text().split():
        pass
    return child


def test_tasks_of_the_node_of_the_pod_and_our_own_have_their_paths_on_the_node(
    pod: tuple[cgroup.Hierarchy, Path],
) -> None:
    hierarchy, place = pod
    assert hierarchy.mount is not None
    # GIVEN a process of the pod's other container, and one outside of the pod
    beside = sleeper_in(place / "beside.scope")
    try:
        # WHEN a process in the agent's container, in a cgroup namespace of its own, looks at both and at itself
        inside = f'echo $$ > {place}/agent.scope/cgroup.procs && exec unshare --cgroup "$@"'
        pids = [str(beside.pid), str(os.getpid()), "self"]
        command = ["sh", "-c", inside, "sh", sys.executable, "-c", ASK, str(hierarchy.number), *pids]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        said = subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout
    finally:
        beside.kill()
        beside.wait()
    found = json.loads(said)
    # THEN the kernel speaks of /../beside.scope, and the answers are those that tracepoints and directories use
    assert "0::/../beside.scope" in found["raw"]
    below = str(place).removeprefix(hierarchy.mount)
    ours = cgroup.parse_membership(Path("/proc/self/cgroup").read_bytes())[hierarchy.number][1]
    assert found["answers"] == {pids[0]: f"{below}/beside.scope", pids[1]: ours, "self": f"{below}/agent.scope"}
    assert found["process"] == f"{below}/beside.scope"
    assert found["known"]
