"""Containers of a window: the last row of each id, how often each was started, and which of them are one family."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import SECOND, START_US, Node, write_segment

from zombiescope.query.container_families import families
from zombiescope.query.containers import Container, containers
from zombiescope.store.container_names import pod_owner
from zombiescope.store.reader import open_recording

pytestmark = pytest.mark.timeout(60)

Read = Callable[..., dict[str, Container]]


@pytest.fixture
def read(tmp_path: Path) -> Callable[[Node], Read]:
    def written(node: Node) -> Read:
        write_segment(tmp_path / "rec", node.tables)

        def of(start_s: float | None = None, end_s: float | None = None) -> dict[str, Container]:
            at = [None if each is None else START_US + round(each * SECOND) for each in (start_s, end_s)]
            with open_recording(tmp_path / "rec") as recording:
                return containers(recording, *at)

        return of

    return written


def at(seconds: float) -> int:
    return START_US + round(seconds * SECOND)


def _ran(node: Node, identity: str, start_s: float, end_s: float | None = None, **known: Any) -> None:
    """A container that was started, and perhaps ended."""
    code = known.pop("code", None)
    node.container(at(start_s), identity, started=at(start_s), runs=1, **known)
    if end_s is not None:
        ended = {"started": at(start_s), "exited": at(end_s), "runs": 1, "code": code}
        node.container(at(end_s), identity, **ended, **known)


def test_the_last_row_of_an_id_holds(read: Callable[[Node], Read]) -> None:
    node = Node()
    node.container(at(1), "a" * 64)
    node.container(at(2), "a" * 64, name="agent", image="registry.local/agent:1", started=at(1))
    found = read(node)()
    assert list(found) == ["a" * 64]
    assert (found["a" * 64].name, found["a" * 64].alive) == ("agent", True)


def test_a_container_that_was_there_before_the_window_is_known_in_it(read: Callable[[Node], Read]) -> None:
    node = Node()
    _ran(node, "early", 1, name="trainer")
    _ran(node, "gone", 2, 5, code=0)
    _ran(node, "ends", 3, 25, code=1)
    _ran(node, "late", 50)
    found = read(node)(20, 40)
    assert sorted(found) == ["early", "ends"]
    assert [found[name].starts for name in ("early", "ends")] == [0, 0]


def test_one_that_was_started_again_is_alive(read: Callable[[Node], Read]) -> None:
    node = Node()
    node.container(at(9), "a", started=at(9), exited=at(5), code=1, runs=2)
    one = read(node)()["a"]
    assert one.alive
    assert not one.failed


@pytest.mark.parametrize("counted", ["runs", "restarts", "started"])
def test_starts_are_counted_by_whoever_saw_most(read: Callable[[Node], Read], counted: str) -> None:
    """The recorder's count of runs, the runtime's of restarts, or the moments themselves; of the window only."""
    node = Node()
    for second in range(0, 60, 10):
        known = {"started": at(second)} if counted == "started" else {counted: second // 10 + 1}
        node.container(at(second), "a", **known)
    starts = {window: read(node)(*window)["a"].starts for window in ((5, 60), (25, 60), (25, 45))}
    assert starts == {(5, 60): 5, (25, 60): 3, (25, 45): 2}


def test_a_count_that_starts_over_with_the_recorder_is_no_negative_number(read: Callable[[Node], Read]) -> None:
    node = Node()
    node.container(at(1), "a", runs=40)
    node.container(at(30), "a", runs=2)
    assert read(node)(10, 60)["a"].starts == 2


@pytest.mark.parametrize(
    ("pod", "owner"),
    [
        ("agent-7d4b9c6f5-x2kqz", "agent"),  # a Deployment
        ("node-exporter-x2kqz", "node-exporter"),  # a DaemonSet
        ("cleanup-28912345-x2kqz", "cleanup"),  # a CronJob
        ("train-3-x2kqz", "train"),  # an indexed Job
        ("db-0", "db-0"),  # a StatefulSet keeps its names
        ("kube-proxy", "kube-proxy"),
        ("my-redis-cache", "my-redis-cache"),
        ("etcd-ip-10-0-0-1", "etcd-ip-10-0-0-1"),
    ],
)
def test_the_owner_of_a_pod_is_its_name_without_what_controllers_add(pod: str, owner: str) -> None:
    assert pod_owner(pod) == owner


def test_ids_that_are_one_thing_are_one_family(read: Callable[[Node], Read]) -> None:
    node = Node()
    for number in range(5):
        _ran(node, f"loop{number}", 10 * number, 10 * number + 2, code=1, name=f"quirky_einstein{number}",
             image="registry.local/ecs-agent:1.2", requester="agent-loop", requester_unit="ecs.service")  # fmt: skip
        _ran(node, f"pod{number}", 10 * number, 10 * number + 5, code=2, name="main", pod="crash-7d4b9c6f5-x2kqz",
             pod_uid="u1", namespace="ml", image="crash:1")  # fmt: skip
        _ran(node, f"name{number}", 10 * number, 10 * number + 5, code=0, name="backup", image=f"backup:{number}")
    _ran(node, "web", 0, name="web", image="python:3.11")
    _ran(node, "worker", 0, name="worker", image="python:3.11")
    found = {family.place: family for family in families(read(node)().values())}
    assert sorted(found) == ["backup", "main of pod ml/crash", "registry.local/ecs-agent:1.2", "web", "worker"]
    loop, pod = found["registry.local/ecs-agent:1.2"], found["main of pod ml/crash"]
    assert (loop.kind, loop.ids, loop.starts, loop.most_starts, loop.failed) == ("image", 5, 5, 1, 5)
    assert (pod.kind, pod.ids, pod.most_starts, pod.last_code) == ("pod", 5, 5, 2)
    assert loop.per_hour == pytest.approx(360)
    assert (found["backup"].failed, found["backup"].succeeded, found["web"].alive) == (0, 5, 1)


def test_a_leak_of_seventy_thousand_ids_takes_no_seconds(read: Callable[[Node], Read]) -> None:
    node = Node()
    for number in range(70_000):
        moment = START_US + number * 20_000
        node.container(moment, f"{number:064x}", name=f"n{number}", image="agent:1", requester="agent-loop",
                       started=moment, exited=moment + 1000, runs=1, code=1)  # fmt: skip
    of = read(node)
    of(0, 1)  # what is cached
    begun = time.process_time()
    found = of(600, 1500)
    kinds = families(found.values())
    spent = time.process_time() - begun
    assert len(found) == 40_000
    assert [family.ids for family in kinds] == [40_000]
    assert spent < 3.0


def test_pods_of_one_owner_are_one_family_also_those_that_ended_before_it_was_known() -> None:
    pods: dict[str, Any] = {"image": "i:1", "name": "main", "namespace": "ml"}
    known = [
        Container("a" * 64, pod="web-7d4b9c6f5-x2kqz", owner="Deployment/web", started_us=2, **pods),
        Container("b" * 64, pod="web-7d4b9c6f5-zzzzz", started_us=1, **pods),
        Container("c" * 64, pod="train-head", owner="RayCluster/train", **pods),
        Container("d" * 64, pod="train-worker-1", owner="RayCluster/train", **pods),
    ]
    assert {(family.name, family.ids) for family in families(known)} == {
        ("Deployment/web/main", 2),
        ("RayCluster/train/main", 2),
    }
