"""A container that comes back for ever is ended where somebody asks for it; its runtime is never touched."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import SECOND, START_US, Node, write_segment
from tests.helpers.plans import changes
from tests.unit.diagnosis.test_plans import HOSTILE, PROTECTED, is_shell, lines

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Actor
from zombiescope.diagnosis.plan_container import stop_what
from zombiescope.model.plans.step import Step
from zombiescope.store.reader import open_recording

ID = "dcf14f9c" * 8


def plan(directory: Path, actor: Actor, **known: Any) -> list[Step]:
    node = Node()
    for second in range(3):
        node.core(START_US + (second + 1) * SECOND, 0)
    if known:
        node.container(START_US + SECOND, ID, **known)
    write_segment(directory, node.tables)
    with open_recording(directory) as recording:
        facts = Facts(recording, recording.start_us, recording.end_us + 1)
        return list(stop_what(facts, actor, "leaks memory cgroups"))


def test_a_restart_policy_is_taken_away_before_the_container_is_stopped(tmp_path: Path) -> None:
    found = plan(
        tmp_path, Actor(container=ID), name="/agent", image="registry.local/ecs-agent:1.2", restart_policy="always"
    )
    assert [step.line for step in found] == [f"docker update --restart=no {ID[:12]}", f"docker stop {ID[:12]}"]
    assert [step.undo for step in found] == [f"docker update --restart=always {ID[:12]}", f"docker start {ID[:12]}"]
    assert [dict(step.act.arguments)["id"] for step in found if step.act] == [ID, ID]
    assert all("ecs-agent:1.2" in step.touches[0] and step.verify for step in found)


def test_a_unit_that_runs_it_is_stopped(tmp_path: Path) -> None:
    found = plan(tmp_path, Actor(container=ID), name="x", requester="agent-loop", requester_unit="agent-loop.service")
    assert [step.line for step in found if step.touches] == ["systemctl disable --now agent-loop.service"]


@pytest.mark.parametrize("unit", [None, "session-4.scope", "docker.service", "ssh.service"])
def test_a_script_without_a_unit_of_its_own_is_named_and_nothing_is_run(tmp_path: Path, unit: str | None) -> None:
    found = plan(tmp_path, Actor(container=ID), name="x", requester="agent-loop", requester_pid=77, requester_unit=unit)
    assert not [step for step in found if step.touches]
    assert "agent-loop (pid 77)" in found[0].line


def test_a_pod_is_only_looked_at(tmp_path: Path) -> None:
    found = plan(tmp_path, Actor(container=ID), name="main", pod="trainer-0", namespace="ml", image="trainer:3")
    looks = [step.line for step in found if step.command is not None]
    assert looks == [
        "kubectl -n ml get pod trainer-0 -o wide",
        "kubectl -n ml describe pod trainer-0",
        "kubectl -n ml logs --previous trainer-0 -c main",
    ]
    assert not any(map(changes, looks))
    assert "ml/trainer-0 (image trainer:3)" in found[-1].line


@pytest.mark.parametrize(
    ("owner", "line", "undo"),
    [
        ("Deployment/web", "scale deployment/web --replicas=0", "scale it again to the value that was noted"),
        ("StatefulSet/db", "scale statefulset/db --replicas=0", "scale it again to the value that was noted"),
        ("Job/train", 'patch job/train --type=merge -p \'{"spec": {"suspend": true}}\'', "false"),
        ("DaemonSet/agent", "patch daemonset/agent", "null"),
    ],
)
def test_the_owner_of_a_pod_is_named_for_kubectl_and_only_a_person_runs_it(
    tmp_path: Path, owner: str, line: str, undo: str
) -> None:
    found = plan(tmp_path, Actor(container=ID), name="main", pod="web-7d-x2", namespace="ml", owner=owner)
    (step,) = [step for step in found if step.kind == "change"]
    assert f"kubectl -n ml {line}" in step.line
    assert changes(step.line)
    assert undo in step.undo
    assert (step.act, step.part) == (None, "stop-gap")
    assert owner in found[-1].line


@pytest.mark.parametrize(("namespace", "owner"), [("kube-system", "DaemonSet/kube-proxy"), ("ml", "RayCluster/r")])
def test_what_is_the_clusters_own_or_unknown_is_named_and_not_scaled(
    tmp_path: Path, namespace: str, owner: str
) -> None:
    found = plan(tmp_path, Actor(container=ID), name="main", pod="p", namespace=namespace, owner=owner)
    assert not [step for step in found if step.kind == "change"]
    assert owner in found[-1].line


def test_a_pod_of_which_only_the_uid_is_known_has_no_invented_name(tmp_path: Path) -> None:
    found = plan(tmp_path, Actor(container=ID, pod="7f3a"))
    assert [step.line for step in found if step.command is not None] == [
        "crictl pods --label io.kubernetes.pod.uid=7f3a"
    ]


def test_a_container_of_which_nothing_is_known_is_named_by_its_id(tmp_path: Path) -> None:
    (step,) = plan(tmp_path, Actor(comm="runc", container=ID, unit="containerd.service"))
    assert step.kind == "advice"
    assert ID in step.line


@pytest.mark.parametrize("unit", PROTECTED)
def test_a_container_whose_program_has_a_units_name_stops_no_unit_of_the_node(tmp_path: Path, unit: str) -> None:
    """A systemd in a container has an ssh.service too."""
    assert not [step for step in plan(tmp_path, Actor(container=ID, unit=unit)) if step.touches]


def test_a_unit_that_runs_a_container_of_which_nothing_is_known_is_stopped(tmp_path: Path) -> None:
    found = plan(tmp_path, Actor(comm="agent", container=ID, unit="ecs.service", cgroup="/ecs/*"))
    assert [step.line for step in found if step.touches] == ["systemctl disable --now ecs.service"]


def test_a_unit_inside_a_container_is_none_of_the_node(tmp_path: Path) -> None:
    inside = Actor(comm="nginx", container=ID, unit="nginx.service", cgroup=f"/docker/{ID}/system.slice/nginx.service")
    assert not [step for step in plan(tmp_path, inside) if step.touches]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(
    "where",
    [
        {"name": "it", "restart_policy": "always"},
        {"name": "it", "image": "it", "restart_policy": "it"},
        {"name": "it", "requester": "it", "requester_unit": "it.service", "requester_command": "it"},
        {"name": "it", "image": "it", "pod": "it", "namespace": "it", "pod_uid": "it"},
        {"pod_uid": "it"},
        {"name": "it", "pod": "it", "namespace": "it", "owner": "Deployment/it"},
        {"name": "it", "pod": "it", "namespace": "it", "owner": "DaemonSet/it"},
    ],
)
def test_names_of_containers_stay_one_word(tmp_path: Path, name: str, where: dict[str, str]) -> None:
    found = plan(tmp_path, Actor(container=ID), **{key: value.replace("it", name) for key, value in where.items()})
    assert found
    for line in lines(found):
        assert line.isprintable()
        assert is_shell(line)
        words = shlex.split(line, comments=True)
        assert all(name in word for word in words if "pwned" in word), line
        assert not [word for word in words if word.startswith("-rf")], line
    assert all(step.line.isprintable() for step in found)
