"""Command lines of clients: which container they ask for, and whether one fits."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zombiescope.node.containers import client, requester
from zombiescope.node.containers.client import Client
from zombiescope.node.containers.description import Description

ID = "dcf1" * 16


def words(line: str) -> bytes:
    return "\0".join(line.split()).encode() + b"\0"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("docker run --rm web:1", Client("docker", "run", None, "web:1")),
        ("/usr/bin/docker run -d --name web -p 80:80 web:1 sh -c x", Client("docker", "run", "web", "web:1")),
        ("docker -H unix:///s container run --name=web -dit -eA=1 web", Client("docker", "run", "web", "web")),
        ("docker --log-level debug run -v/a:/b -- web", Client("docker", "run", None, "web")),
        ("sh /usr/local/bin/docker run web", Client("docker", "run", None, "web")),
        ("docker start web db", Client("docker", "start", targets=("web", "db"))),
        ("podman run --replace --name x quay.io/x", Client("podman", "run", "x", "quay.io/x")),
        ("nerdctl -n k8s.io run --name x img", Client("nerdctl", "run", "x", "img")),
        ("ctr -n default run --rm docker.io/x/redis:7 cache", Client("ctr", "run", "cache", "docker.io/x/redis:7")),
        ("docker compose up -d", Client("docker", "compose")),
        ("docker-compose -f x.yml up", Client("docker-compose", "up")),
        ("docker ps", None),
        ("docker", None),
        ("sleep 3", None),
        ("vi docker-run", None),
        ("", None),
    ],
)  # fmt: skip
def test_what_a_client_asks_for(line: str, found: Client | None) -> None:
    assert client.parse(words(line)) == found


@given(st.binary(max_size=300))
def test_any_bytes_are_read(data: bytes) -> None:
    client.parse(data)
    client.parse(b"docker\0run\0" + data)


@pytest.mark.parametrize(
    ("line", "known", "fit"),
    [
        ("docker run --name web img", Description(name="web", image="other"), 3),
        ("docker run --name web img", Description(name="db", image="img"), 0),
        ("docker run busybox", Description(name="x", image="docker.io/library/busybox:latest"), 2),
        ("docker run busybox:1", Description(name="x", image="busybox:2"), 0),
        ("docker run busybox", Description(), 1),
        ("docker start web", Description(name="web"), 3),
        ("docker start dcf1dcf1dcf1", Description(name="web"), 3),
        ("docker start db", Description(name="web"), 0),
        ("docker compose up", Description(name="proj-web-1"), 1),
    ],
)
def test_whether_a_container_is_what_it_asks_for(line: str, known: Description, fit: int) -> None:
    found = client.parse(words(line))
    assert found is not None
    assert found.fit(ID, known) == fit


class Proc:
    def __init__(self, root: Path) -> None:
        self.root = root

    def runs(self, pid: int, ppid: int, comm: str, line: str, unit: str, started: int = 5) -> None:
        place = self.root / "proc" / str(pid)
        place.mkdir(parents=True)
        (place / "stat").write_text(f"{pid} ({comm}) S {ppid} 1 1 0 -1 0 {'0 ' * 12}{started} {'0 ' * 25}\n")
        (place / "cgroup").write_text(f"6:memory:/\n1:name=systemd:/system.slice/{unit}\n")
        (place / "cmdline").write_bytes(words(line))
        (place / "comm").write_text(f"{comm}\n")


def test_the_one_who_ran_it_stands_behind_wrappers(tmp_path: Path) -> None:
    proc = Proc(tmp_path)
    proc.runs(10, 1, "agent-loop", "/bin/sh /opt/agent-loop", "ecs.service")
    proc.runs(11, 10, "sudo", "sudo docker run img", "ecs.service")
    proc.runs(12, 11, "docker", "docker run img", "ecs.service")
    found = requester.read(12, str(tmp_path))
    assert found is not None
    assert found.client == Client("docker", "run", None, "img")
    assert found.requester == requester.Requester("agent-loop", 10, "ecs.service", "/bin/sh /opt/agent-loop")


def test_a_unit_whose_command_is_the_client_is_that_unit(tmp_path: Path) -> None:
    proc = Proc(tmp_path)
    proc.runs(12, 1, "docker", "docker run --name web img", "web.service")
    found = requester.read(12, str(tmp_path))
    assert found is not None
    assert found.requester == requester.Requester("docker", 12, "web.service", "docker run --name web img")


def test_a_parent_that_is_younger_than_its_child_is_another_process(tmp_path: Path) -> None:
    proc = Proc(tmp_path)
    proc.runs(10, 1, "stranger", "stranger", "x.service", started=900)
    proc.runs(12, 10, "docker", "docker run img", "web.service", started=5)
    found = requester.read(12, str(tmp_path))
    assert found is not None
    assert found.requester is not None
    assert found.requester.comm == "docker"


def test_the_clients_that_run_are_found_by_one_look(tmp_path: Path) -> None:
    proc = Proc(tmp_path)
    proc.runs(10, 1, "agent-loop", "/bin/sh /opt/agent-loop", "ecs.service")
    proc.runs(12, 10, "docker", "docker run --name web img", "ecs.service")
    proc.runs(13, 10, "docker", "docker logs web", "ecs.service")
    (tmp_path / "proc/self").mkdir()
    ((pid, asking),) = requester.running(str(tmp_path))
    assert (pid, asking.client.name, asking.requester and asking.requester.comm) == (12, "web", "agent-loop")


def test_one_that_is_gone_or_asks_for_nothing_is_none(tmp_path: Path) -> None:
    Proc(tmp_path).runs(12, 1, "docker", "docker ps", "x.service")
    assert requester.read(12, str(tmp_path)) is None
    assert requester.read(13, str(tmp_path)) is None
