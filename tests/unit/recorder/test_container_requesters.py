"""Who asked for a container: the client that lives and fits, and nobody where that is not certain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.helpers.tracked_containers import AGENT, LOOP, OTHER, SECOND, Node, cid, run

from zombiescope.node.containers.description import Description
from zombiescope.recorder.container_lookup import (
    ContainerAnswer,
    RunningClientsAnswer,
    RunningClientsQuestion,
)
from zombiescope.recorder.tracepoints import TraceRecord


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_client_that_lives_and_fits_is_the_one(node: Node) -> None:
    clients = [node.client(30, run(), LOOP), node.client(31, run("other:1"), OTHER)]
    node.made(1)
    node.second(*clients, *node.answer())
    row = node.last(1)
    assert (row["requester"], row["requester_pid"], row["requester_unit"]) == ("agent-loop", 10, "ecs.service")
    # it asked for one container: the next of the same image is not its
    node.made(2)
    node.second(*node.answer())
    assert node.last(2)["requester"] is None


def test_a_name_beats_an_image(node: Node) -> None:
    clients = [node.client(30, run(name="agent"), LOOP), node.client(31, run(), OTHER)]
    node.made(1)
    node.second(*clients, *node.answer())
    assert node.last(1)["requester"] == "agent-loop"


def test_of_several_that_fit_equally_nobody_is_named_unless_they_are_one(node: Node) -> None:
    clients = [node.client(30, run(), LOOP), node.client(31, run(), OTHER)]
    node.made(1)
    node.second(*clients, *node.answer())
    assert node.last(1)["requester"] is None
    same = [node.client(40, run("x"), LOOP), node.client(41, run("x"), LOOP)]
    node.made(2)
    node.second(*same, *node.answer(Description(name="n", image="x")))
    assert node.last(2)["requester"] == "agent-loop"


def test_one_that_had_ended_before_did_not_ask(node: Node) -> None:
    client = node.client(30, run(), LOOP)
    node.second(client)
    node.ends(30)
    node.second()
    node.second()
    node.made(1)
    node.second(*node.answer())
    assert node.last(1)["requester"] is None


def test_one_that_came_later_did_not_ask(node: Node) -> None:
    node.made(1)
    node.now += SECOND
    client = node.client(30, run(), LOOP)
    node.second(client, *node.answer())
    assert node.last(1)["requester"] is None


def test_a_restart_policy_has_no_client(node: Node) -> None:
    """Somebody else runs the same image just then."""
    client = node.client(30, run(), OTHER)
    node.made(1)
    node.second(client, *node.answer(Description(name="a", image=AGENT.image, restarts=4, restart_policy="always")))
    assert (node.last(1)["requester"], node.last(1)["restart_policy"]) == (None, "always")


def test_a_pods_container_has_no_client(node: Node) -> None:
    client = node.client(30, run(), OTHER)
    node.made(1)
    node.second(client, *node.answer(Description(name="a", image=AGENT.image, pod_uid="u")))
    assert node.last(1)["requester"] is None


def test_a_client_of_before_is_who_asked_for_a_container_of_before_if_it_names_it(node: Node) -> None:
    for number in (1, 2):
        node.tracker.exists(f"/docker/{cid(number)}")
    node.second()
    assert RunningClientsQuestion() in node.asked
    web, other = node.client(30, run("web:1", "web"), LOOP).asking, node.client(31, run("x:1"), OTHER).asking
    assert web is not None
    assert other is not None
    told = RunningClientsAnswer(RunningClientsQuestion(), [(30, web), (31, other)])
    first, second = node.answer()
    assert isinstance(first, ContainerAnswer)
    assert isinstance(second, ContainerAnswer)
    node.second(told, replace(first, description=Description(name="web")), replace(second, description=Description()))
    assert (node.last(1)["requester"], node.last(2)["requester"]) == ("agent-loop", None)
    # AND it is asked once
    node.second()
    assert RunningClientsQuestion() not in node.asked


def test_a_storm_of_clients_is_bounded(node: Node) -> None:
    executed = node.tracker.tracepoints()[0].handle
    for pid in range(1000):
        executed(TraceRecord(1, 0, 0, pid, pid, b""), {}, node.now)
    assert len(node.asked) == 40
    node.second()
    assert "960 clients were not read" in node.rows["gaps"][0]["why"]


def test_only_clients_of_runtimes_are_traced(node: Node) -> None:
    where = node.tracker.tracepoints()[0].where
    assert where is not None
    assert 'filename ~ "*/docker"' in where
