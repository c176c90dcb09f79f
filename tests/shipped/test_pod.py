"""The chart's pod under runc, on a node with cgroup v2: it sees what root sees, or names what it does not."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Needs
from tests.helpers.booted_node import booted, until
from tests.shipped import acceptance, pod_spec
from tests.shipped.acceptance import Seen
from zombiescope.lab import programs
from zombiescope.lab.node import LabNode, Plan

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.long]

NODE = "ip-10-0-0-7.ec2.internal"
STATE = "/var/lib/zombiescope"
OS_RELEASE = "NAME=image\nID=image\nVERSION_ID=99\nPRETTY_NAME='the image of the pod'\n"
BUNDLE = "/pod/bundle"
EMULATED = (
    'resources={"requests":{"cpu":"100m","memory":"192Mi"},"limits":{"cpu":"4","memory":"512Mi"}}',
    'config={"recorder":{"diagnose":false,"python":false,"whole_stacks":false}}',
)
"""A processor that is emulated is slower by an order of magnitude: with the limit of one CPU the agent is stopped in 99
of 100 periods and blind for half a minute at a time, which says nothing about a node."""
# What the image is: the distribution's files and zombiescope, with an os-release of its own.
MAKE_ROOT = f"""
mkdir -p {BUNDLE}/rootfs /pod/upper/etc /pod/upper/usr/lib /pod/work /pod/config /pod/tmp
mount -t tmpfs tmpfs /pod/upper && mkdir -p /pod/upper/u/etc /pod/upper/u/usr/lib /pod/upper/w
cp /pod/os-release /pod/upper/u/usr/lib/os-release; cp /pod/os-release /pod/upper/u/etc/os-release
mount -t overlay overlay -o lowerdir=/,upperdir=/pod/upper/u,workdir=/pod/upper/w {BUNDLE}/rootfs
mkdir -p {BUNDLE}/rootfs/opt/zombiescope {BUNDLE}/rootfs/etc/zombiescope {BUNDLE}/rootfs/run/zombiescope
rm -rf {BUNDLE}/rootfs/run/dbus {BUNDLE}/rootfs/etc/machine-id
mount --bind /opt/zombiescope {BUNDLE}/rootfs/opt/zombiescope
"""


@dataclass
class Told:
    """What a pod said and recorded."""

    seen: Seen
    status: dict[str, Any] = field(default_factory=dict)
    metrics: str = ""
    ready: dict[str, Any] = field(default_factory=dict)
    node: dict[str, Any] = field(default_factory=dict)
    uid_map: str = ""


@pytest.fixture(scope="module")
def node() -> Iterator[LabNode]:
    Needs().binary("runc", "runc")
    with booted(Plan("v2")) as made:
        made.put("/usr/local/sbin/runc", Path(programs.find("runc")).read_bytes())
        made.put("/pod/os-release", OS_RELEASE)
        made.shell(f"chmod 755 /usr/local/sbin/runc; ip link set eth0 up; ip link set lo up\n{MAKE_ROOT}")
        yield made


def start_pod(node: LabNode, name: str, *more: str) -> None:
    settings = (*more, *([] if node.accelerated else EMULATED))
    spec = pod_spec.spec(NODE, name, *settings)
    spec = {key: value for key, value in spec.items() if value is not None}
    node.put("/pod/config/agent.yaml", pod_spec.config_map(*settings))
    node.put(f"{BUNDLE}/config.json", json.dumps(spec))
    node.shell(f"mkdir -p {STATE} /pod/run /pod/state && cd {BUNDLE} && (setsid runc run --bundle {BUNDLE} {name} "
               f">/pod/{name}.log 2>&1 </dev/null &)")  # fmt: skip
    until(node, f"grep -q 'recording {NODE} into' /pod/{name}.log", limit_s=150.0)


def in_pod(node: LabNode, name: str, *command: str) -> str:
    text: str = node.run("runc", "exec", name, *command, limit_s=150.0).check().text
    return text


def ask(node: LabNode, name: str, path: str) -> str:
    """By the pod's own interpreter, in its own network namespace. /readyz may answer 503."""
    code = ("import sys, urllib.request, urllib.error as e\n"
            "try: a = urllib.request.urlopen(sys.argv[1], timeout=60)\n"
            "except e.HTTPError as error: a = error\n"
            "print(a.read().decode())")  # fmt: skip
    return in_pod(node, name, "/usr/bin/python3", "-c", code, f"http://127.0.0.1:9321{path}")


def told_of(node: LabNode, name: str, into: Path) -> Told:
    told = Told(Seen(into))
    told.status = json.loads(in_pod(node, name, "/opt/zombiescope/bin/zombiescope", "status", "--json"))
    told.metrics = ask(node, name, "/metrics")
    told.ready = json.loads(ask(node, name, "/readyz"))
    node.run("runc", "kill", name, "TERM")
    until(node, f"! runc list -q | grep -qx {name} || runc list | grep -q '{name}.*stopped'", limit_s=90.0)
    node.run("runc", "delete", "--force", name)
    told.seen = Seen(node.get(STATE, into))
    told.node = json.loads((told.seen.recording / f"node={NODE}/node.json").read_text())
    node.shell(f"cp /pod/{name}.log /pod/last.log; rm -rf {STATE}; sleep 1")
    return told


@pytest.fixture(scope="module")
def pod(node: LabNode, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """With the chart's defaults, and the load."""
    start_pod(node, "zombiescope-x7k2p")
    time.sleep(5)
    acceptance.run_load(node)
    return told_of(node, "zombiescope-x7k2p", tmp_path_factory.mktemp("pod"))


@pytest.fixture(scope="module")
def apart(node: LabNode, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """In a network namespace of its own."""
    start_pod(node, "zombiescope-q9w8e", "hostNetwork=false")
    time.sleep(12)
    return told_of(node, "zombiescope-q9w8e", tmp_path_factory.mktemp("apart"))


@pytest.mark.parametrize("question", acceptance.LIST, ids=lambda one: one.__name__)
def test_the_pod_sees_what_root_on_the_host_sees(pod: Told, question: Callable[[Seen], None]) -> None:
    question(pod.seen)


def test_the_recording_is_the_nodes_and_not_the_pods(pod: Told) -> None:
    assert [one.name for one in pod.seen.recording.iterdir() if one.name.startswith("node=")] == [f"node={NODE}"]
    assert "image" not in pod.node["os"]


def test_nothing_of_the_node_is_missing_but_what_the_pod_may_not(pod: Told) -> None:
    """No GPU is there, and the API server is not. What is listed is listed everywhere."""
    missing = {one["source"] for one in pod.status["recorders"][0]["missing"]}
    assert missing == {"recorder priority"}
    assert {one["source"] for one in pod.ready["missing"]} == missing
    assert 'zombiescope_source_missing{source="recorder priority"} 1' in pod.metrics


def test_units_of_the_host_are_seen_without_a_mount_of_the_bus(pod: Told) -> None:
    assert "systemd" not in {one["source"] for one in pod.node["missing"]}


def test_a_pod_in_a_network_of_its_own_says_what_it_does_not_see(apart: Told) -> None:
    (why,) = [one["why"] for one in apart.node["missing"] if one["source"] == "host network namespace"]
    assert "ethtool" in why
    assert 'zombiescope_source_missing{source="host network namespace"} 1' in apart.metrics
    assert "host network namespace" in {one["source"] for one in apart.ready["missing"]}
    assert "host network namespace" in {one["source"] for one in apart.status["recorders"][0]["missing"]}


def test_a_pod_in_a_network_of_its_own_still_sees_the_nodes_card_and_its_queues(apart: Told) -> None:
    acceptance.the_card_its_queues_and_counters_are_the_nodes(apart.seen)
