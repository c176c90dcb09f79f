"""The chart's pod under real containerd and runc, on nodes with cgroup v2: it sees what root sees, or names what it
does not. Two nodes: Debian 12 with containerd 1.6, Ubuntu 24.04 with containerd 2 and AppArmor."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Needs
from tests.helpers import ubuntu_node
from tests.helpers.booted_node import booted, on_host, until
from tests.shipped import acceptance, cri
from tests.shipped.acceptance import Seen
from tests.shipped.cri import Pod
from zombiescope.lab import programs
from zombiescope.lab.node import LabNode, Plan

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.long]

NODE = "ip-10-0-0-7.ec2.internal"
STATE = "/var/lib/zombiescope"
EMULATED = (
    'resources={"requests":{"cpu":"100m","memory":"192Mi"},"limits":{"cpu":"4","memory":"512Mi"}}',
    'config={"recorder":{"diagnose":false,"python":false,"whole_stacks":false}}',
)
"""A processor that is emulated is slower by an order of magnitude: with the limit of one CPU the agent is stopped in 99
of 100 periods and blind for half a minute at a time, which says nothing about a node."""
CONTAINERD = ("containerd", "containerd-shim-runc-v2", "ctr", "runc")
CNI = ("host-local", "loopback", "ptp")


@dataclass
class Told:
    """What a pod said and recorded."""

    seen: Seen
    status: dict[str, Any] = field(default_factory=dict)
    metrics: str = ""
    ready: dict[str, Any] = field(default_factory=dict)
    node: dict[str, Any] = field(default_factory=dict)
    not_checked: str = ""


@contextmanager
def debian() -> Iterator[LabNode]:
    """The laboratory's node, with this machine's containerd."""
    needs = Needs()
    for program in CONTAINERD:
        needs.binary(program, "runc" if program == "runc" else "containerd")
    with booted(Plan("v2")) as node:
        for program in CONTAINERD:
            node.put(f"/usr/bin/{program}", Path(programs.find(program)).read_bytes())
        for plugin in CNI:
            node.put(f"/usr/lib/cni/{plugin}", Path("/usr/lib/cni", plugin).read_bytes())
        node.put("/etc/systemd/system/containerd.service", "[Service]\nExecStart=/usr/bin/containerd\nDelegate=yes\n")
        programs_ = " ".join(f"/usr/bin/{program}" for program in CONTAINERD)
        node.shell(f"chmod 755 {programs_} /usr/lib/cni/*; systemctl daemon-reload")
        yield node


NODES = {"debian": debian, "ubuntu": ubuntu_node.booted}


@pytest.fixture(scope="module", params=sorted(NODES))
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabNode]:
    with NODES[request.param]() as made:
        made.shell("ip link set eth0 up; ip link set lo up; mkdir -p /opt/cni; ln -sfn /usr/lib/cni /opt/cni/bin")
        # A node on which only the pod is installed has the distribution's own setting.
        made.shell(
            "sysctl --quiet --write kernel.perf_event_paranoid=$(grep -q ubuntu /etc/os-release && echo 4 || echo 3)"
        )
        cri.configure(made)
        made.shell("systemctl restart containerd", limit_s=180.0)
        cri.load_images(made, tmp_path_factory.mktemp("images"))
        yield made


def started(node: LabNode, name: str, *more: str) -> Pod:
    pod = cri.start(node, name, NODE, *more, *([] if node.accelerated else EMULATED))
    until(node, f"grep -q 'recording {NODE} into' {cri.LOGS}/agent.log", limit_s=150.0)
    return pod


def ask(pod: Pod, path: str) -> str:
    """By the pod's own interpreter, in its own network namespace. /readyz may answer 503."""
    code = ("import sys, urllib.request, urllib.error as e\n"
            "try: a = urllib.request.urlopen(sys.argv[1], timeout=60)\n"
            "except e.HTTPError as error: a = error\n"
            "print(a.read().decode())")  # fmt: skip
    return pod.exec("/usr/bin/python3", "-c", code, f"http://127.0.0.1:9321{path}")


def told_of(node: LabNode, pod: Pod, into: Path) -> Told:
    told = Told(Seen(into))
    told.status = json.loads(pod.exec("/opt/zombiescope/bin/zombiescope", "status", "--json"))
    told.metrics = ask(pod, "/metrics")
    told.ready = json.loads(ask(pod, "/readyz"))
    pod.stop()
    told.seen = Seen(node.get(STATE, into))
    told.node = json.loads((told.seen.recording / f"node={NODE}/node.json").read_text())
    told.not_checked = json.dumps(on_host("diagnose", told.seen.recording)["not_checked"])
    node.shell(f"rm -rf {STATE} {cri.LOGS}; sleep 1")
    return told


@pytest.fixture(scope="module")
def pod(node: LabNode, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """With the chart's defaults, and the load."""
    made = started(node, "zombiescope-x7k2p")
    time.sleep(5)
    acceptance.run_load(node)
    return told_of(node, made, tmp_path_factory.mktemp("pod"))


@pytest.fixture(scope="module")
def apart(node: LabNode, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """In a network namespace of its own."""
    made = started(node, "zombiescope-q9w8e", "hostNetwork=false")
    time.sleep(12)
    return told_of(node, made, tmp_path_factory.mktemp("apart"))


@pytest.mark.parametrize("question", acceptance.LIST, ids=lambda one: one.__name__)
def test_the_pod_sees_what_root_on_the_host_sees(pod: Told, question: Callable[[Seen], None]) -> None:
    question(pod.seen)


def test_the_recording_is_the_nodes_and_not_the_pods(pod: Told) -> None:
    assert [one.name for one in pod.seen.recording.iterdir() if one.name.startswith("node=")] == [f"node={NODE}"]
    assert "image" not in pod.node["os"]


def everywhere(told: Told) -> set[str]:
    """The sources that are missing: the same in status, /readyz, /metrics and what a diagnosis did not check."""
    missing = {one["source"] for one in told.status["recorders"][0]["missing"]}
    assert {one["source"] for one in told.ready["missing"]} == missing
    assert {one["source"] for one in told.node["missing"]} == missing
    for source in missing:
        assert f'zombiescope_source_missing{{source="{source}"}} 1' in told.metrics
        assert source in told.not_checked
    return missing


def test_nothing_of_the_node_is_missing_but_what_the_pod_may_not(pod: Told) -> None:
    """No GPU is there, and the API server is not. What is listed is listed everywhere."""
    assert everywhere(pod) == {"recorder priority"}


def test_a_pod_in_a_network_of_its_own_says_what_it_does_not_see(apart: Told) -> None:
    assert everywhere(apart) == {"recorder priority", "host network namespace"}
    (why,) = [one["why"] for one in apart.node["missing"] if one["source"] == "host network namespace"]
    assert "ethtool" in why


def test_a_pod_in_a_network_of_its_own_still_sees_the_nodes_card_and_its_queues(apart: Told) -> None:
    acceptance.the_card_its_queues_and_counters_are_the_nodes(apart.seen)
