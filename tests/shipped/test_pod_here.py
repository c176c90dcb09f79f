"""The chart's pod on this machine, under a real containerd: named after its node, with a list of what it cannot see."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Needs
from tests.shipped import here
from zombiescope.kernel import namespaces, nic_queue

pytestmark = [pytest.mark.kernel, pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def told() -> Iterator[dict[str, Any]]:
    needs = Needs()
    needs.root()
    for program in ("containerd", "ctr", "runc"):
        needs.binary(program, "runc" if program == "runc" else "containerd")
    if not (here.PLUGINS / "ptp").exists():
        needs.lack("needs /usr/lib/cni/ptp (Debian package containernetworking-plugins)")
    packages = sorted((ROOT / "dist").glob("zombiescope_*.deb"))
    if not packages:
        needs.lack("needs dist/zombiescope_*.deb (make deb)")
    missing = [place for place in map(Path, here.OWN) if not place.exists()]
    enter = ["unshare", "--mount", "--propagation", "private", sys.executable, "-m", "tests.shipped.here"]
    try:
        done = subprocess.run([*enter, packages[-1]], cwd=ROOT, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr[-3000:]
        yield json.loads(done.stdout.splitlines()[-1])
    finally:
        for place in missing:  # mount points
            with suppress(OSError):
                place.rmdir()
        for top in (*Path("/sys/fs/cgroup").glob("*/zombiescope-shipped"), Path("/sys/fs/cgroup/zombiescope-shipped")):
            for one in sorted(top.rglob("*"), reverse=True):
                if one.is_dir():
                    one.rmdir()
            if top.is_dir():
                top.rmdir()


@pytest.mark.parametrize("network", ["shared", "apart"])
def test_the_recording_is_the_nodes_and_what_is_missing_is_listed(told: dict[str, Any], network: str) -> None:
    pod = told[network]
    assert pod["name"] == f"node={here.NODE}"
    assert pod["os"] != "the image of the pod"
    assert set(pod["status"]) <= set(pod["node.json"])  # the file is of the end; a source may fail until then
    assert pod["own_cgroup"] is None or here.PARENT in pod["own_cgroup"]
    # Where process 1 may be read the node's files are: a machine that forbids that is seen, too.
    assert ("host file system" in pod["status"]) == (pod["os"] is None)


def test_only_the_pod_in_a_network_of_its_own_lacks_that_of_the_node(told: dict[str, Any]) -> None:
    if not nic_queue.physical_interfaces() and namespaces.in_host("net") is None:
        pytest.skip("this machine has no card by which a network of its own could be told")
    assert "host network namespace" not in told["shared"]["status"]
    assert "host network namespace" in told["apart"]["status"]
