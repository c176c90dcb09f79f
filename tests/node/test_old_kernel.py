"""The founding case on a kernel that has it: reads of the root's statistics walk every removed memory cgroup.

Needs an image of a 4.19 kernel of one's own (docs/commands/lab.md says what is built in), named by
ZOMBIESCOPE_KERNEL_4_19; without it this file is not collected.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.helpers.booted_node import booted, until

from zombiescope.lab.node import LabNode, Plan

pytestmark = [pytest.mark.node, pytest.mark.long, pytest.mark.slow]

ZOMBIES = 6_000
TOP = "/sys/fs/cgroup/memory"

LEAKY = f"""
import ctypes, hashlib, os, time
ctypes.CDLL(None).prctl(15, b"leaky", 0, 0, 0)
os.makedirs("{TOP}/ecs")
os.makedirs("/dev/shm/pins")
home = next(line.strip().split(":")[2] for line in open("/proc/self/cgroup") if ":memory:" in line)

def join(cgroup):
    with open(cgroup + "/cgroup.procs", "w") as file:
        file.write("0")

for number in range({ZOMBIES}):
    child = "{TOP}/ecs/" + hashlib.sha256(b"%d" % number).hexdigest()
    os.mkdir(child)
    join(child)
    with open(f"/dev/shm/pins/{{number}}", "w") as file:
        file.write("x")
    join("{TOP}" + home)
    os.rmdir(child)
open("/run/leaked", "w").close()
time.sleep(3600)
"""

KUBELET = f"""
import ctypes, sys, time
ctypes.CDLL(None).prctl(15, b"kubelet", 0, 0, 0)
end = time.monotonic() + 12
while time.monotonic() < end:
    open("{TOP}/" + sys.argv[1], "rb").read()
"""


@pytest.fixture(scope="module")
def node() -> Iterator[LabNode]:
    with booted(Plan("v1", os.environ["ZOMBIESCOPE_KERNEL_4_19"])) as up:
        assert up.shell("uname -r").startswith("4.19.")
        up.put("/root/leaky.py", LEAKY)
        up.put("/root/kubelet.py", KUBELET)
        up.shell("systemd-run --unit=recorder zombiescope record /root/rec --quiet")
        until(up, 'test -n "$(find /root/rec -size +4k)"')
        up.shell("systemd-run --unit=leaky python3 /root/leaky.py")
        until(up, "test -e /run/leaked", limit_s=180.0)
        yield up


@pytest.mark.parametrize(
    ("file", "reader"),
    [
        ("memory.numa_stat", "memcg_numa_stat_show"),
        ("memory.stat", "memcg_stat_show"),
        ("memory.usage_in_bytes", "mem_cgroup_usage mem_cgroup_read_u64"),
    ],
)
def test_whoever_reads_the_roots_statistics_walks_them(node: LabNode, file: str, reader: str) -> None:
    begun = node.shell("date +%s").strip()
    node.shell(f"systemd-run --unit=kubelet --wait python3 /root/kubelet.py {file}", limit_s=120.0)
    node.shell("sleep 4")
    done = node.run("zombiescope", "diagnose", "/root/rec", "--from", begun, "--json", limit_s=120.0)
    said: dict[str, Any] = json.loads(done.text)
    first = said["incidents"][0]
    assert first["causes"][0]["pattern"] == "zombie-memcg", [cause["pattern"] for cause in first["causes"]]
    assert "kubelet" in first["hog"]["name"]
    assert first["causes"][0]["culprit"]["name"] == "leaky"
    text = json.dumps(first)
    assert any(name in text for name in reader.split())
