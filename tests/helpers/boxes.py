"""A node of containers: a training pod, a container that behaves, a loop that asks for a new one every three seconds, a
pod whose container kubelet makes anew, and one that Docker's restart policy starts again. A minute of two cores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.helpers.made import SECOND, START_US, Node, write_segment

SECONDS = 60
TRAINER, WEB, POLICY = "aaaa" * 16, "bbbb" * 16, "dddd" * 16
TRAINER_UID, CRASH_UID = "0c7f1e2a-0000-4444-8888-123456789abc", "11111111-2222-4333-8444-555555555555"
LOOP_IMAGE = "registry.local:5000/ops/ecs-agent:1.2"
LOOP: dict[str, Any] = {
    "image": LOOP_IMAGE, "runtime": "docker", "requester": "agent-loop", "requester_pid": 812,
    "requester_unit": "ecs.service", "requester_command": "docker run --rm ecs-agent:1.2",
    "requester_container": "eeee" * 16, "requester_how": "command line",
}  # fmt: skip
CRASH: dict[str, Any] = {
    "name": "agent", "image": "registry.local:5000/agent:3", "pod": "agent-7d4b9c6f5-x2kqz", "namespace": "kube-system",
    "pod_uid": CRASH_UID, "runtime": "containerd",
}  # fmt: skip


def at(seconds: float) -> int:
    return START_US + round(seconds * SECOND)


def ran(node: Node, identity: str, start_s: float, end_s: float | None = None, **known: Any) -> None:
    """A container that was started, and perhaps ended."""
    code = known.pop("code", None)
    what = {"started": at(start_s), "runs": 1, **known}
    node.container(at(start_s), identity, **what)
    if end_s is not None:
        node.container(at(end_s), identity, exited=at(end_s), code=code, **what)


def loop(node: Node, number: int, code: int | None = 1) -> None:
    """One of those that agent-loop asks for."""
    start = number * 3.0
    ran(node, f"{number:04x}" * 16, start, start + 1.5, name=f"quirky_einstein{number}", code=code, **LOOP)


def crash(node: Node, number: int) -> None:
    """One of those that kubelet makes in the same pod, under a new id each time."""
    start = number * 8.0
    ran(node, f"c{number:03x}" * 16, start, start + 1, code=2, restarts=number + 10, **CRASH)


def box_node() -> Node:
    node = Node()
    _samples(node)
    trained: dict[str, Any] = {"name": "main", "image": "registry.local:5000/trainer:2", "runtime": "containerd"}
    ran(node, TRAINER, 0, pod="train-0", namespace="ml", pod_uid=TRAINER_UID, **trained)
    ran(node, WEB, 0, name="web", image="nginx:1.25", runtime="docker", restart_policy="no")
    for number in range(18):
        loop(node, number)
    for number in range(6):
        crash(node, number)
    for number in range(5):
        known = {"name": "sidecar", "image": "sidecar:1", "runtime": "docker", "restart_policy": "always"}
        node.container(at(10 + 9 * number), POLICY, started=at(10 + 9 * number), exited=at(9 + 9 * number), code=137,
                       runs=number + 1, restarts=number, **known)  # fmt: skip
    return node


def _samples(node: Node) -> None:
    tasks = [
        node.task(100, "python3", unit=f"cri-containerd-{TRAINER}.scope", container=TRAINER, pod=TRAINER_UID),
        node.task(200, "nginx", container=WEB),
        node.task(300, "kubelet", unit="kubelet.service"),
    ]
    stack = node.stack([node.frame("main", "user"), node.frame("work", "user"), node.frame("vfs_read")])
    for second in range(SECONDS):
        for place, task in enumerate(tasks):
            node.sample(at(second + 0.1 * (place + 1)), place % 2, task, stack)
        for cpu in range(2):
            node.core(at(second + 1), cpu, user=30)


def write_boxes(directory: Path) -> Path:
    write_segment(directory, box_node().tables)
    return directory
